//! Which addresses calls may go to: public ones, and those of a private network that whoever runs the deployment names.
//!
//! A name is looked up once for a connection, and the connection goes to an address of that answer. So a name that leads elsewhere
//! a moment later leads nobody astray.

use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use std::sync::Arc;

use futures::future::BoxFuture;
use ipnet::IpNet;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use thiserror::Error;

/// The addresses of private networks, of this machine and of links that HTTP targets may have.
///
/// ```
/// use tidegate_engine::PrivateTargets;
///
/// let named: PrivateTargets = "10.2.0.0/16,fd00:1::/32".parse()?;
/// assert_ne!(named, PrivateTargets::None);
/// assert!("10.2.0.0".parse::<PrivateTargets>().is_err(), "a range has a length");
/// # Ok::<(), tidegate_engine::PrivateTargetsError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum PrivateTargets {
    /// None.
    #[default]
    None,
    /// Those within these ranges.
    Within(Vec<IpNet>),
    /// All. Only for local mode and emulators: on AWS, clients could have requests sent into the network of the functions.
    All,
}

/// A text that names no private targets.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("'{0}' is none of true, false and ranges such as 10.2.0.0/16 with commas between them")]
pub struct PrivateTargetsError(String);

impl FromStr for PrivateTargets {
    type Err = PrivateTargetsError;

    fn from_str(text: &str) -> Result<Self, PrivateTargetsError> {
        let bad = |_| PrivateTargetsError(text.to_owned());
        match text {
            "true" => Ok(Self::All),
            "false" | "" => Ok(Self::None),
            ranges => ranges
                .split(',')
                .map(|range| range.trim().parse())
                .collect::<Result<_, _>>()
                .map(Self::Within)
                .map_err(bad),
        }
    }
}

impl PrivateTargets {
    /// Whether calls may go to an address.
    pub(crate) fn allow(&self, ip: IpAddr) -> bool {
        // However an IPv4 address is written, it is the same.
        let ip = ip.to_canonical();
        match self {
            Self::All => true,
            Self::Within(ranges) => is_public(ip) || ranges.iter().any(|range| range.contains(&ip)),
            Self::None => is_public(ip),
        }
    }
}

/// A name has none but addresses that calls may not go to: what is behind them will not change by waiting.
#[derive(Debug, Error)]
#[error("the name leads to no address that is allowed")]
pub(crate) struct NoAllowedAddress;

/// Nobody knows a name. That may change.
#[derive(Debug, Error)]
#[error("the name leads nowhere")]
pub(crate) struct NotFound;

/// Looks names up.
type LookUp = Arc<dyn Fn(String) -> BoxFuture<'static, std::io::Result<Vec<SocketAddr>>> + Send + Sync>;

/// Resolves names to the addresses that calls may go to.
pub(crate) struct AllowedOnly {
    allowed: PrivateTargets,
    look_up: LookUp,
}

impl AllowedOnly {
    pub(crate) fn new(allowed: PrivateTargets) -> Self {
        let look_up = |name: String| -> BoxFuture<'static, _> {
            Box::pin(async move { Ok(tokio::net::lookup_host((name, 0)).await?.collect()) })
        };
        Self { allowed, look_up: Arc::new(look_up) }
    }

    async fn addresses(
        look_up: LookUp,
        allowed: PrivateTargets,
        name: String,
    ) -> Result<Vec<SocketAddr>, Refusal> {
        let found = look_up(name).await.map_err(|_| NotFound)?;
        let usable: Vec<SocketAddr> =
            found.into_iter().filter(|address| allowed.allow(address.ip())).collect();
        if usable.is_empty() { Err(NoAllowedAddress.into()) } else { Ok(usable) }
    }
}

type Refusal = Box<dyn std::error::Error + Send + Sync>;

impl Resolve for AllowedOnly {
    fn resolve(&self, name: Name) -> Resolving {
        let found =
            Self::addresses(Arc::clone(&self.look_up), self.allowed.clone(), name.as_str().to_owned());
        Box::pin(async move { Ok(Box::new(found.await?.into_iter()) as Addrs) })
    }
}

fn is_public(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(v4) => {
            let [a, b, c, _] = v4.octets();
            !(v4.is_private()
                || v4.is_loopback()
                || v4.is_link_local()
                || v4.is_unspecified()
                || v4.is_broadcast()
                || v4.is_multicast()
                || v4.is_documentation()
                || a == 0
                || a >= 240
                || (a == 100 && (64..128).contains(&b))
                || (a == 192 && b == 0)
                || (a == 192 && b == 88 && c == 99)
                || (a == 198 && (18..20).contains(&b)))
        }
        IpAddr::V6(v6) => match v6.to_ipv4_mapped() {
            Some(v4) => is_public(IpAddr::V4(v4)),
            None => {
                // Only global unicast, less 6to4 and the translation and documentation ranges that can embed any IPv4.
                let [first, second, ..] = v6.segments();
                (first & 0xe000) == 0x2000
                    && first != 0x2002
                    && !(first == 0x2001 && second < 0x0200)
                    && !(first == 0x2001 && second == 0x0db8)
                    && !(first == 0x3fff && second < 0x1000)
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn only_public_addresses_are_public() {
        for private in [
            "127.0.0.1",
            "10.0.0.1",
            "172.16.5.4",
            "192.168.1.1",
            "169.254.169.254",
            "0.0.0.0",
            "100.64.0.1",
            "198.18.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "::1",
            "::",
            "fe80::1",
            "fd00::1",
            "::ffff:10.0.0.1",
            "64:ff9b::a00:1",
            "2002:a00:1::",
            "2001:db8::1",
            "192.88.99.1",
            "3fff::1",
            "3fff:fff::1",
        ] {
            assert!(!PrivateTargets::None.allow(private.parse().unwrap()), "{private}");
        }
        for public in
            ["8.8.8.8", "172.32.0.1", "192.88.98.1", "2606:4700::1111", "::ffff:8.8.8.8", "3fff:1000::1"]
        {
            assert!(PrivateTargets::None.allow(public.parse().unwrap()), "{public}");
        }
    }

    #[test]
    fn private_addresses_are_allowed_within_named_ranges_only_however_they_are_written() {
        let named: PrivateTargets = "10.2.0.0/16, fd00:1::/32,127.0.0.1/32".parse().unwrap();
        for (ip, allowed) in [
            ("10.2.255.1", true),
            ("10.3.0.1", false),
            ("::ffff:10.2.0.1", true),
            ("::ffff:10.3.0.1", false),
            ("64:ff9b::a02:1", false),
            ("fd00:1:2::3", true),
            ("fd00:2::1", false),
            ("127.0.0.1", true),
            ("127.0.0.2", false),
            ("169.254.169.254", false),
            ("8.8.8.8", true),
        ] {
            assert_eq!(named.allow(ip.parse().unwrap()), allowed, "{ip}");
            assert!(PrivateTargets::All.allow(ip.parse().unwrap()));
        }
        for wrong in ["yes", "10.2.0.0", "10.2.0.0/33", "10.2.0.0/16,", "fd00::/8;10.0.0.0/8"] {
            let error = wrong.parse::<PrivateTargets>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("'{wrong}' is none of true, false and ranges")), "{error}");
        }
        for (text, all) in
            [("true", PrivateTargets::All), ("false", PrivateTargets::None), ("", PrivateTargets::None)]
        {
            assert_eq!(text.parse(), Ok(all));
        }
    }

    /// What a name leads to, one answer after the other.
    fn scripted(answers: &[&[&str]]) -> LookUp {
        let read = |ip: &&str| SocketAddr::new(ip.parse().unwrap(), 0);
        let answers: Vec<Vec<SocketAddr>> =
            answers.iter().rev().map(|answer| answer.iter().map(read).collect()).collect();
        let answers = Mutex::new(answers);
        Arc::new(move |_| {
            let answer = answers.lock().unwrap().pop().ok_or_else(|| std::io::ErrorKind::NotFound.into());
            Box::pin(async move { answer })
        })
    }

    #[tokio::test]
    async fn a_name_that_rebinds_leads_nobody_into_the_network() {
        let look_up = scripted(&[&["8.8.8.8"], &["169.254.169.254"], &["10.0.0.1", "8.8.4.4", "::1"]]);
        let resolve = async || {
            let found =
                AllowedOnly::addresses(Arc::clone(&look_up), PrivateTargets::None, "x".to_owned()).await;
            found.map(|found| found.iter().map(|address| address.ip().to_string()).collect::<Vec<_>>())
        };
        assert_eq!(resolve().await.unwrap(), ["8.8.8.8"]);
        assert!(resolve().await.unwrap_err().is::<NoAllowedAddress>());
        assert_eq!(resolve().await.unwrap(), ["8.8.4.4"], "only what is allowed is ever connected to");
        assert!(resolve().await.unwrap_err().is::<NotFound>());
    }
}
