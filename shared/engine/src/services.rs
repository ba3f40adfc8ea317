//! How the services of AWS are reached that targets other than queues and endpoints are in.
//!
//! Who starts an engine says it: the engine reads no environment, and asks for no credentials before an event is to be sent.

use std::collections::BTreeMap;

use aws_sdk_sqs::config::{Credentials, ProvideCredentials, SharedCredentialsProvider};
use tidegate_domain::arn::{Arn, Service};

/// The variable that names the endpoint of all services that have none of their own.
const ENDPOINT_OF_ALL: &str = "AWS_ENDPOINT_URL";
/// What is signed with where nobody checks: an emulator that was given no keys.
const NO_KEYS: &str = "tidegate-local";

/// How other services of AWS are reached.
///
/// ```
/// use tidegate_domain::arn::{Arn, Service};
/// use tidegate_engine::Services;
///
/// let topic = Arn::new(Service::Sns, "arn:aws:sns:eu-west-1:123456789012:orders")?;
/// assert!(Services::on_one_machine(|_| None).why_out_of_reach(&topic).is_some());
/// let emulated = |name: &str| (name == "AWS_ENDPOINT_URL").then(|| "http://127.0.0.1:4566".to_owned());
/// assert_eq!(Services::on_one_machine(emulated).why_out_of_reach(&topic), None);
/// # Ok::<(), tidegate_domain::arn::ArnError>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Services {
    credentials: Option<SharedCredentialsProvider>,
    /// Endpoints in the place of those of AWS.
    endpoints: Endpoints,
    /// Whether those of AWS may be called.
    is_on_aws: bool,
}

/// Endpoints that stand in for those of AWS.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Endpoints(BTreeMap<Service, String>);

impl Endpoints {
    /// Endpoints as the variables of the SDKs of AWS name them: one for each service, such as `AWS_ENDPOINT_URL_SNS`, or
    /// `AWS_ENDPOINT_URL` for all that have none of their own.
    pub fn from_lookup(lookup: impl Fn(&str) -> Option<String>) -> Self {
        let find = |name| lookup(name).filter(|value| !value.is_empty());
        let of = |service: Service| find(service.endpoint_variable()).or_else(|| find(ENDPOINT_OF_ALL));
        let named = Service::ALL.into_iter().filter_map(|service| Some((service, of(service)?)));
        Self(named.map(|(service, url)| (service, url.trim_end_matches('/').to_owned())).collect())
    }
}

impl Services {
    /// The services of AWS, but for those that an endpoint stands in for.
    pub fn on_aws(credentials: impl ProvideCredentials + 'static, endpoints: Endpoints) -> Self {
        let credentials = Some(SharedCredentialsProvider::new(credentials));
        Self { credentials, endpoints, is_on_aws: true }
    }

    /// The services that an endpoint stands in for, and no other. `lookup` knows the environment: the endpoints, and keys for
    /// them where they are checked.
    pub fn on_one_machine(lookup: impl Fn(&str) -> Option<String>) -> Self {
        let key = |name: &str| lookup(name).filter(|value| !value.is_empty());
        let keys = Credentials::new(
            key("AWS_ACCESS_KEY_ID").unwrap_or_else(|| NO_KEYS.to_owned()),
            key("AWS_SECRET_ACCESS_KEY").unwrap_or_else(|| NO_KEYS.to_owned()),
            key("AWS_SESSION_TOKEN"),
            None,
            "environment",
        );
        let credentials = Some(SharedCredentialsProvider::new(keys));
        Self { credentials, endpoints: Endpoints::from_lookup(lookup), is_on_aws: false }
    }

    /// Why nothing can be sent there, and what to do about it; `None` when it can.
    pub fn why_out_of_reach(&self, arn: &Arn) -> Option<String> {
        let variable = arn.service().endpoint_variable();
        self.endpoint(arn).is_none().then(|| {
            format!(
                "Tidegate runs on one machine here and calls nothing of AWS; set {variable} or {ENDPOINT_OF_ALL} to what \
                 stands in for it and start it again, or use an 'http' or 'sqs' target"
            )
        })
    }

    /// Where the service of an ARN is called, without a slash at the end.
    pub(crate) fn endpoint(&self, arn: &Arn) -> Option<String> {
        let given = self.endpoints.0.get(&arn.service()).cloned();
        given.or_else(|| self.is_on_aws.then(|| format!("https://{}", arn.host())))
    }

    pub(crate) fn is_on_aws(&self) -> bool {
        self.is_on_aws
    }

    pub(crate) fn credentials(&self) -> Option<&SharedCredentialsProvider> {
        self.credentials.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoints(values: &[(&str, &str)]) -> Endpoints {
        Endpoints::from_lookup(|name| {
            values.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        })
    }

    fn arn(text: &str) -> Arn {
        Arn::of_any(text).unwrap()
    }

    #[test]
    fn an_endpoint_of_a_service_goes_before_that_of_all_and_both_before_aws() {
        let bus = arn("arn:aws:events:eu-west-1:123456789012:event-bus/default");
        let machine = arn("arn:aws-cn:states:cn-north-1:123456789012:stateMachine:x");
        let keys = Credentials::new("a", "b", None, None, "test");
        let at = |values: &[(&str, &str)], arn: &Arn| {
            Services::on_aws(keys.clone(), endpoints(values)).endpoint(arn).unwrap()
        };
        assert_eq!(at(&[], &bus), "https://events.eu-west-1.amazonaws.com");
        assert_eq!(at(&[], &machine), "https://states.cn-north-1.amazonaws.com.cn");
        let all = ("AWS_ENDPOINT_URL", "http://localhost:4566/");
        let own = ("AWS_ENDPOINT_URL_EVENTBRIDGE", "http://localhost:1");
        assert_eq!(at(&[all, own], &bus), "http://localhost:1");
        assert_eq!(at(&[all, own], &machine), "http://localhost:4566");
        assert_eq!(at(&[("AWS_ENDPOINT_URL", "")], &bus), "https://events.eu-west-1.amazonaws.com");
    }

    #[test]
    fn on_one_machine_nothing_of_aws_is_called() {
        let function = arn("arn:aws:lambda:eu-west-1:123456789012:function:work");
        let why = Services::on_one_machine(|_| None).why_out_of_reach(&function).unwrap();
        assert!(why.contains("set AWS_ENDPOINT_URL_LAMBDA or AWS_ENDPOINT_URL to"), "{why}");
        assert_eq!(Services::on_one_machine(|_| None).endpoint(&function), None);
        // Without anybody's word it is the same.
        assert!(Services::default().why_out_of_reach(&function).is_some());
    }
}
