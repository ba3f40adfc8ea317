//! Addresses as they travel: where events go, and who is told when a run has come to its end.

use std::collections::BTreeMap;

use serde::Deserialize;
use tidegate_domain::arn::{Arn, Service};
use tidegate_domain::http_call::{Body, Headers, HttpCall, HttpTimeout, Method, Statuses};
use tidegate_domain::limits::HTTP_STATUSES;
use tidegate_domain::target::{BusLabel, MessageGroup, Target};
use tidegate_domain::unknown::Unknown;
use tidegate_protocol::{
    self as protocol, EventBridgeTarget, HttpBody, HttpMethod, HttpTarget, LambdaTarget, ReleaseRule,
    SnsTarget, SqsTarget, StepFunctionsTarget,
};
use utoipa::ToSchema;

use crate::problem::FieldErrors;
use crate::wire::bounds::{List, bounded_fields};
use crate::wire::number::{Number, check_or_default};

/// Where events go, as it is sent. In the document it is [`protocol::Target`], which answers have.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Target)]
pub(crate) struct TargetBody {
    sqs: Option<SqsTarget>,
    http: Option<HttpTargetBody>,
    event_bridge: Option<EventBridgeTarget>,
    sns: Option<SnsTarget>,
    lambda: Option<LambdaTarget>,
    step_functions: Option<StepFunctionsTarget>,
}

/// An endpoint and how it is called, as it is sent. In the document it is [`protocol::HttpTarget`], which answers have.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = HttpTarget)]
pub(crate) struct HttpTargetBody {
    url: String,
    release: Option<ReleaseRule>,
    method: Option<HttpMethod>,
    headers: Option<BTreeMap<String, String>>,
    body: Option<HttpBody>,
    #[schema(value_type = Option<u32>)]
    timeout_seconds: Option<Number<HttpTimeout>>,
    #[schema(value_type = Option<Vec<String>>)]
    expected_statuses: Option<List<String, HTTP_STATUSES>>,
    #[schema(value_type = Option<Vec<String>>)]
    retry_statuses: Option<List<String, HTTP_STATUSES>>,
}

bounded_fields!(HttpTargetBody: timeout_seconds, expected_statuses, retry_statuses);

/// The field of a job that is an address by itself, and no object with one.
pub(crate) const HEARTBEAT: &str = "heartbeat_url";

/// An address that was checked by its form.
#[derive(Debug, Clone)]
pub(crate) struct CheckedTarget {
    pub(crate) target: Target,
    /// An answer that the target expects releases the token.
    pub(crate) release_on_response: bool,
}

/// Checks the address that stands in the field `name`.
pub(crate) fn check(given: &TargetBody, name: &str, errors: &mut FieldErrors) -> Option<CheckedTarget> {
    if !given.is_one(name, errors) {
        return None;
    }
    if let Some(SqsTarget { queue_url, release, message_group }) = &given.sqs {
        if releases_on_response(*release)? {
            let message = format!(
                "{name}.sqs.release is 'on_response', but a queue gives no answer that says the work is done; \
                    leave it out and release the token, or use an 'http' target"
            );
            errors.add(format!("{name}.sqs.release"), "on_response", message);
        }
        let mut target =
            errors.keep(&format!("{name}.sqs.queue_url"), &**queue_url, Target::sqs(queue_url))?;
        if let Some(text) = message_group {
            let grouped = MessageGroup::new(text).and_then(|group| match group {
                MessageGroup::Job => Ok(target),
                group => target.grouped(group),
            });
            target = errors.keep(&format!("{name}.sqs.message_group"), &**text, grouped)?;
        }
        return Some(CheckedTarget { target, release_on_response: false });
    }
    if let Some(http) = &given.http {
        let target = errors.keep(&format!("{name}.http.url"), &*http.url, Target::http(&http.url));
        let call = http.check(name, errors);
        let release_on_response = releases_on_response(http.release)?;
        return Some(CheckedTarget { target: target?.called(call?), release_on_response });
    }
    let (service, text) = given.arn()?;
    let mut target = Target::by_arn(check_arn(service, text, name, errors)?);
    if let Some(EventBridgeTarget { source, detail_type, .. }) = &given.event_bridge {
        let mut label = |field: &str, text: &Option<String>, label: Result<BusLabel, _>| {
            errors.keep(&format!("{name}.event_bridge.{field}"), text.clone(), label)
        };
        let (source_alone, both) = (
            BusLabel::new(source.as_deref(), None),
            BusLabel::new(source.as_deref(), detail_type.as_deref()),
        );
        label("source", source, source_alone)?;
        target = target.labelled(label("detail_type", detail_type, both)?);
    }
    Some(CheckedTarget { target, release_on_response: false })
}

fn check_arn(service: Service, text: &str, name: &str, errors: &mut FieldErrors) -> Option<Arn> {
    let field = format!("{name}.{}.{}", service.kind(), service.field());
    errors.keep(&field, text, Arn::new(service, text))
}

impl TargetBody {
    /// The kinds that are given.
    fn kinds(&self) -> Vec<&'static str> {
        let given = [
            ("sqs", self.sqs.is_some()),
            ("http", self.http.is_some()),
            ("event_bridge", self.event_bridge.is_some()),
            ("sns", self.sns.is_some()),
            ("lambda", self.lambda.is_some()),
            ("step_functions", self.step_functions.is_some()),
        ];
        given.into_iter().filter(|(_, is_given)| *is_given).map(|(kind, _)| kind).collect()
    }

    /// Whether exactly one kind is given; otherwise `errors` says what to do.
    fn is_one(&self, name: &str, errors: &mut FieldErrors) -> bool {
        let message = match self.kinds().as_slice() {
            [_] => return true,
            [first, second, ..] => {
                format!("{name} has both '{first}' and '{second}'; give one, or make two jobs")
            }
            [] => format!(
                "{name} has neither 'sqs' nor 'http' nor another kind of target; give \
                    {{\"sqs\": {{\"queue_url\": \"...\"}}}} or {{\"http\": {{\"url\": \"...\"}}}}"
            ),
        };
        errors.add(name, (), message);
        false
    }

    /// The ARN that is given, and whose it is to be.
    fn arn(&self) -> Option<(Service, &str)> {
        let bus = self.event_bridge.as_ref().map(|bus| (Service::EventBridge, &*bus.bus_arn));
        let topic = self.sns.as_ref().map(|topic| (Service::Sns, &*topic.topic_arn));
        let function = self.lambda.as_ref().map(|function| (Service::Lambda, &*function.function_arn));
        let machine = self.step_functions.as_ref();
        let machine = machine.map(|machine| (Service::StepFunctions, &*machine.state_machine_arn));
        bus.or(topic).or(function).or(machine)
    }
}

/// The same for the address of a completion: no token goes with it, and it is always sent as it is, to a queue or an endpoint.
pub(crate) fn check_untokened(given: &TargetBody, name: &str, errors: &mut FieldErrors) -> Option<Target> {
    if let Some((service, _)) = given.arn() {
        let field = format!("{name}.{}", service.kind());
        let message = format!("{field} takes events only; a completion goes to 'sqs' or 'http'");
        errors.add(field, (), message);
        return None;
    }
    let mut options = given.http.as_ref().map(HttpTargetBody::options).unwrap_or_default();
    options.retain(|option| *option != "headers");
    for option in &options {
        let message = format!(
            "{name}.http.{option} says how events are delivered, and a completion is always a POST of its JSON; leave it out"
        );
        errors.add(format!("{name}.http.{option}"), (), message);
    }
    let mut checked = check(given, name, errors)?;
    if let Target::Http { call, .. } = &mut checked.target {
        let field = format!("{name}.http.headers");
        call.headers = errors.keep(&field, (), std::mem::take(&mut call.headers).without_events())?;
    }
    if checked.release_on_response {
        let message = format!(
            "{name}.http.release says when a token is released, and nothing holds one here; leave it out"
        );
        errors.add(format!("{name}.http.release"), "on_response", message);
        return None;
    }
    options.is_empty().then_some(checked.target)
}

impl HttpTargetBody {
    /// The fields that say how the endpoint is called, as far as they are given.
    fn options(&self) -> Vec<&'static str> {
        let given = [
            ("method", self.method.is_some()),
            ("headers", self.headers.is_some()),
            ("body", self.body.is_some()),
            ("timeout_seconds", self.timeout_seconds.is_some()),
            ("expected_statuses", self.expected_statuses.is_some()),
            ("retry_statuses", self.retry_statuses.is_some()),
        ];
        given.into_iter().filter(|(_, is_given)| *is_given).map(|(field, _)| field).collect()
    }

    /// Checks how the endpoint is called; `None` when a field is wrong, and then `errors` says which.
    fn check(&self, name: &str, errors: &mut FieldErrors) -> Option<HttpCall> {
        let field = |field: &str| format!("{name}.http.{field}");
        let method = method(self.method);
        let headers = Headers::new(self.headers.clone().unwrap_or_default());
        // The values are not repeated: some are secrets.
        let headers = errors.keep(&field("headers"), (), headers);
        let timeout = check_or_default(self.timeout_seconds, errors);
        errors.rename("timeout_seconds", &field("timeout_seconds"));
        let mut statuses = |given: &Option<List<String, HTTP_STATUSES>>, called: &str, least| {
            let Some(written) = given else { return Some(None) };
            let checked = Statuses::new(written, least).map_err(|e| format!("{called}: {e}"));
            errors.keep(&field(called), written.join(", "), checked).map(Some)
        };
        let expected = statuses(&self.expected_statuses, "expected_statuses", 1);
        let retried = statuses(&self.retry_statuses, "retry_statuses", 0);
        let (method, body) = (method?, body(self.body)?);
        if self.body.is_some() && !method.has_body() {
            let message = format!(
                "{name}.http.body goes with POST, PUT and PATCH, and {} has no body; leave it out: what the event says is in \
                    headers",
                method.as_str()
            );
            errors.add(field("body"), (), message);
            return None;
        }
        let call = HttpCall {
            method,
            headers: headers?,
            body,
            timeout: timeout?,
            expected: expected?,
            retried: retried?,
            unknown: Unknown::default(),
        };
        errors.keep(&field("retry_statuses"), (), call.checked())
    }
}

fn method(word: Option<HttpMethod>) -> Option<Method> {
    match word {
        None | Some(HttpMethod::Post) => Some(Method::Post),
        Some(HttpMethod::Put) => Some(Method::Put),
        Some(HttpMethod::Patch) => Some(Method::Patch),
        Some(HttpMethod::Get) => Some(Method::Get),
        Some(HttpMethod::Delete) => Some(Method::Delete),
        Some(HttpMethod::Other) => None,
    }
}

fn body(word: Option<HttpBody>) -> Option<Body> {
    match word {
        None | Some(HttpBody::Event) => Some(Body::Event),
        Some(HttpBody::Payload) => Some(Body::Payload),
        Some(HttpBody::Other) => None,
    }
}

fn releases_on_response(word: Option<ReleaseRule>) -> Option<bool> {
    match word {
        Some(ReleaseRule::OnResponse) => Some(true),
        Some(ReleaseRule::ByConsumer) | None => Some(false),
        Some(ReleaseRule::Other) => None,
    }
}

/// An address as it is answered: what is as by default is left out.
pub(crate) fn view(target: &Target, release_on_response: bool) -> protocol::Target {
    match target {
        Target::Sqs { queue_url, group } => {
            let message_group = group.named().map(str::to_owned);
            SqsTarget { queue_url: queue_url.clone(), release: None, message_group }.into()
        }
        Target::Http { url, call } => {
            let release = release_on_response.then_some(ReleaseRule::OnResponse);
            HttpTarget { release, ..called_view(url, call) }.into()
        }
        Target::EventBridge { bus, label } => {
            let (source, detail_type) = label.named();
            let (source, detail_type) = (source.map(str::to_owned), detail_type.map(str::to_owned));
            EventBridgeTarget { bus_arn: bus.to_string(), source, detail_type }.into()
        }
        Target::Sns { topic } => protocol::Target::sns(topic.as_str()),
        Target::Lambda { function } => protocol::Target::lambda(function.as_str()),
        Target::StepFunctions { machine } => protocol::Target::step_functions(machine.as_str()),
    }
}

fn called_view(url: &str, call: &HttpCall) -> HttpTarget {
    let HttpCall { method, headers, body, timeout, expected, retried, unknown: _ } = call;
    let headers = headers.as_map();
    HttpTarget {
        method: match method {
            Method::Post => None,
            Method::Put => Some(HttpMethod::Put),
            Method::Patch => Some(HttpMethod::Patch),
            Method::Get => Some(HttpMethod::Get),
            Method::Delete => Some(HttpMethod::Delete),
        },
        headers: (!headers.is_empty()).then(|| headers.clone()),
        body: (*body == Body::Payload).then_some(HttpBody::Payload),
        timeout_seconds: (*timeout != HttpTimeout::DEFAULT).then_some(timeout.get()),
        expected_statuses: expected.as_ref().map(Statuses::written),
        retry_statuses: retried.as_ref().map(Statuses::written),
        ..HttpTarget::new(url)
    }
}

/// The field that carries the URL of an address that stands in the field `name`.
pub(crate) fn url_field_of(name: &str, target: &Target) -> String {
    if name == HEARTBEAT {
        return name.to_owned();
    }
    let transport = target.transport();
    format!("{name}.{}.{}", transport.name, transport.url_field)
}
