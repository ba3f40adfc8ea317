//! What `template.yaml` tells the functions.

use thiserror::Error;
use tidegate_engine::{
    BusTarget, BusTargetError, Config, Endpoints, HeartbeatUrl, HeartbeatUrlError, PrivateTargets,
    PrivateTargetsError, Services,
};

/// The environment of a function, as `template.yaml` sets it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Environment {
    stack: String,
    table_prefix: String,
    dispatch_queue_url: String,
    scan_queue_url: String,
    release_queue_url: String,
    dead_letter_queue_url: String,
    release_dead_letter_queue_url: String,
    private_targets: PrivateTargets,
    endpoints: Endpoints,
    admin_key_sha256: Option<String>,
    heartbeat: Option<HeartbeatUrl>,
    bus: BusTarget,
}

/// Why a function cannot start.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum EnvironmentError {
    /// A variable that the template sets is missing or empty: this one.
    #[error("the environment variable {0} is not set; deploy with template.yaml, which sets it")]
    Missing(&'static str),
    /// `TIDEGATE_ALLOW_PRIVATE_TARGETS` is none of what it may be.
    #[error("TIDEGATE_ALLOW_PRIVATE_TARGETS: {0}")]
    PrivateTargets(PrivateTargetsError),
    /// `TIDEGATE_HEARTBEAT_URL` is no address.
    #[error("TIDEGATE_HEARTBEAT_URL: {0}")]
    Heartbeat(HeartbeatUrlError),
    /// `TIDEGATE_BUS` is no place for a bus.
    #[error("TIDEGATE_BUS: {0}")]
    Bus(BusTargetError),
}

impl Environment {
    /// Reads the process's environment.
    ///
    /// # Errors
    /// [`EnvironmentError::Missing`] with the first variable that is missing or empty.
    pub fn read() -> Result<Self, EnvironmentError> {
        Self::from_lookup(|name| std::env::var(name).ok())
    }

    fn from_lookup(lookup: impl Fn(&str) -> Option<String>) -> Result<Self, EnvironmentError> {
        let find = |name| lookup(name).filter(|value| !value.is_empty());
        let need = |name| find(name).ok_or(EnvironmentError::Missing(name));
        Ok(Self {
            stack: need("TIDEGATE_STACK")?,
            table_prefix: need("TIDEGATE_TABLE_PREFIX")?,
            dispatch_queue_url: need("TIDEGATE_DISPATCH_QUEUE_URL")?,
            scan_queue_url: need("TIDEGATE_SCAN_QUEUE_URL")?,
            release_queue_url: need("TIDEGATE_RELEASE_QUEUE_URL")?,
            dead_letter_queue_url: need("TIDEGATE_DEAD_LETTER_QUEUE_URL")?,
            release_dead_letter_queue_url: need("TIDEGATE_RELEASE_DEAD_LETTER_QUEUE_URL")?,
            private_targets: match find("TIDEGATE_ALLOW_PRIVATE_TARGETS") {
                Some(text) => text.parse().map_err(EnvironmentError::PrivateTargets)?,
                None => PrivateTargets::None,
            },
            endpoints: Endpoints::from_lookup(&lookup),
            admin_key_sha256: find("TIDEGATE_ADMIN_KEY_SHA256"),
            heartbeat: find("TIDEGATE_HEARTBEAT_URL")
                .map(|text| text.parse().map_err(EnvironmentError::Heartbeat))
                .transpose()?,
            bus: match find("TIDEGATE_BUS") {
                Some(text) => text.parse().map_err(EnvironmentError::Bus)?,
                None => BusTarget::Off,
            },
        })
    }

    /// The name of the stack: the dimension of its metrics.
    pub fn stack(&self) -> &str {
        &self.stack
    }

    /// What the names of the tables begin with, before a dash.
    pub fn table_prefix(&self) -> &str {
        &self.table_prefix
    }

    /// The SHA-256 of the admin key, in lower-case hex; `None` in all functions but the master, and where no admin may
    /// call.
    pub fn admin_key_sha256(&self) -> Option<&str> {
        self.admin_key_sha256.as_deref()
    }

    /// The address that is told of each tick, if there is one; `None` in all functions but the emitter.
    pub fn heartbeat(&self) -> Option<&HeartbeatUrl> {
        self.heartbeat.as_ref()
    }

    /// What stands in for other services of AWS; mostly nothing does.
    pub fn endpoints(&self) -> &Endpoints {
        &self.endpoints
    }

    /// What the engine needs of it, without what those services are called with.
    pub fn config(&self) -> Config {
        Config {
            dispatch_queue_url: self.dispatch_queue_url.clone(),
            scan_queue_url: self.scan_queue_url.clone(),
            release_queue_url: self.release_queue_url.clone(),
            dead_letter_queue_url: self.dead_letter_queue_url.clone(),
            release_dead_letter_queue_url: self.release_dead_letter_queue_url.clone(),
            private_targets: self.private_targets.clone(),
            services: Services::default(),
            bus: self.bus.clone(),
            samples: true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(values: &[(&str, &str)]) -> Result<Environment, EnvironmentError> {
        Environment::from_lookup(|name| {
            values.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn what_is_missing_is_named_and_private_targets_are_refused_unless_allowed() {
        let stack = ("TIDEGATE_STACK", "t");
        let prefix = ("TIDEGATE_TABLE_PREFIX", "t");
        let queue = ("TIDEGATE_DISPATCH_QUEUE_URL", "https://q/1/d");
        let scan = ("TIDEGATE_SCAN_QUEUE_URL", "https://q/1/s");
        let release = ("TIDEGATE_RELEASE_QUEUE_URL", "https://q/1/r");
        let dead = ("TIDEGATE_DEAD_LETTER_QUEUE_URL", "https://q/1/d-dead");
        let dead_releases = ("TIDEGATE_RELEASE_DEAD_LETTER_QUEUE_URL", "https://q/1/r-dead");
        let all = [stack, prefix, queue, scan, release, dead, dead_releases];
        let missing = |values: &[(&str, &str)]| environment(values).unwrap_err();
        assert_eq!(missing(&[prefix]), EnvironmentError::Missing("TIDEGATE_STACK"));
        assert_eq!(missing(&[stack, prefix]), EnvironmentError::Missing("TIDEGATE_DISPATCH_QUEUE_URL"));
        assert_eq!(missing(&[stack, prefix, queue]), EnvironmentError::Missing("TIDEGATE_SCAN_QUEUE_URL"));
        assert_eq!(
            missing(&[stack, ("TIDEGATE_TABLE_PREFIX", ""), queue]),
            EnvironmentError::Missing("TIDEGATE_TABLE_PREFIX")
        );
        let allowed_by = |value| [&all[..], &[("TIDEGATE_ALLOW_PRIVATE_TARGETS", value)]].concat();
        for value in ["true", "false", "10.2.0.0/16"] {
            let read = environment(&allowed_by(value)).unwrap();
            assert_eq!(read.config().private_targets, value.parse().unwrap());
        }
        let wrong = missing(&allowed_by("1")).to_string();
        assert!(wrong.starts_with("TIDEGATE_ALLOW_PRIVATE_TARGETS: '1' is none of true, false"), "{wrong}");
        let told = |url| environment(&[&all[..], &[("TIDEGATE_HEARTBEAT_URL", url)]].concat());
        assert_eq!(
            told("https://hc-ping.com/a").unwrap().heartbeat(),
            "https://hc-ping.com/a".parse().ok().as_ref()
        );
        assert_eq!(told("").unwrap().heartbeat(), None);
        let wrong = told("hc-ping.com/a").unwrap_err().to_string();
        assert!(wrong.starts_with("TIDEGATE_HEARTBEAT_URL: it is no URL"), "{wrong}");
        let bus = |text| environment(&[&all[..], &[("TIDEGATE_BUS", text)]].concat());
        assert_eq!(bus("log").unwrap().config().bus, BusTarget::Log);
        assert_eq!(bus("").unwrap().config().bus, BusTarget::Off);
        let wrong = bus("on").unwrap_err().to_string();
        assert!(wrong.starts_with("TIDEGATE_BUS: it is none of off, log"), "{wrong}");
        let read = environment(&all).unwrap();
        assert_eq!((read.admin_key_sha256(), read.endpoints()), (None, &Endpoints::default()));
        let emulated = [("AWS_ENDPOINT_URL", "http://localhost:4566")];
        let emulated = environment(&[&all[..], &emulated].concat()).unwrap();
        assert_ne!(emulated.endpoints(), &Endpoints::default());
        let own =
            ["https://q/1/d", "https://q/1/s", "https://q/1/r", "https://q/1/d-dead", "https://q/1/r-dead"];
        assert_eq!(read.config().own_queues(), own);
    }
}
