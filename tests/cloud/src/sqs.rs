//! SQS as it is: its latency, messages that come twice, late, or though they were deleted, and what arrives at the queues of
//! consumers.

use std::sync::Arc;

use aws_smithy_runtime_api::client::http::{HttpConnector as _, SharedHttpConnector};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_types::body::SdkBody;
use serde_json::{Value, json};
use tidegate_domain::clock::Clock as _;
use tidegate_domain::limits::SQS_DELAY_SECONDS;
use tidegate_embedded::Service;
use tokio::time::sleep;

use crate::arrivals::Arrivals;
use crate::clock::VirtualClock;
use crate::dice::Dice;
use crate::limits::{OVERTAKEN_BY, SQS_CALL, UNANSWERED};
use crate::reply::{Answer, json_reply, no_answer, sqs_error};
use crate::weather::{Trouble, Weather};

/// What differs between regions.
#[derive(Debug, Clone, Copy, Default)]
pub struct QueueOptions {
    /// Of a million messages that are sent, so many come twice.
    pub doubled: u32,
    /// Of a million calls that send, so many send messages of which every second is overtaken by later ones.
    pub overtaken: u32,
    /// Of a million messages with a group that are sent to a standard queue, so many are not told from those of others: their
    /// client is not known to have more than its share yet.
    pub unfair: u32,
    /// Of a million calls that delete, so many are answered and delete nothing: their messages come again.
    pub undeleted: u32,
}

/// The queues of a region, as its processes see them.
pub(crate) struct Sqs {
    pub(crate) clock: VirtualClock,
    pub(crate) dice: Arc<Dice>,
    pub(crate) weather: Arc<Weather>,
    pub(crate) arrivals: Arc<Arrivals>,
    pub(crate) options: QueueOptions,
}

impl Sqs {
    /// Serves a request: `inner` leads to the embedded queues.
    pub(crate) async fn serve(&self, inner: SharedHttpConnector, request: HttpRequest) -> Answer {
        let target = request.headers().get("x-amz-target").unwrap_or_default();
        let is_send = target.ends_with(".SendMessage") || target.ends_with(".SendMessageBatch");
        let latency = self.dice.time(SQS_CALL);
        sleep(latency / 2).await;
        match self.weather.of(Service::Sqs, self.clock.now()) {
            None => {}
            Some(Trouble::Slow(by)) => sleep(by).await,
            Some(Trouble::Throttled) => {
                return sqs_error(
                    400,
                    "RequestThrottled",
                    "The request was denied due to request throttling.",
                );
            }
            Some(Trouble::Gone) if self.dice.once_in(UNANSWERED) => return no_answer().await,
            Some(Trouble::Gone) => {
                return sqs_error(500, "InternalFailure", "The request failed because of an internal error.");
            }
        }
        let is_delete = target.ends_with(".DeleteMessage") || target.ends_with(".DeleteMessageBatch");
        if is_delete && self.dice.once_in(self.options.undeleted) {
            return deleted(&body_of(&request));
        }
        let request = if is_send { self.unfair(self.overtaken(request)) } else { request };
        let sent = is_send.then(|| body_of(&request));
        let doubled =
            if is_send && self.dice.once_in(self.options.doubled) { request.try_clone() } else { None };
        let answer = inner.call(request).await;
        if let Some(request) = doubled {
            drop(inner.call(request).await);
            self.note(sent.as_ref(), &answer);
        }
        self.note(sent.as_ref(), &answer);
        sleep(latency / 2).await;
        answer
    }

    /// Lets some messages of a request be overtaken: they are ready a little later than others that are sent after them.
    fn overtaken(&self, mut request: HttpRequest) -> HttpRequest {
        if !self.dice.once_in(self.options.overtaken) {
            return request;
        }
        let mut body = body_of(&request);
        let delays = |message: &mut Value| {
            let delay = message["DelaySeconds"].as_u64().unwrap_or_default() + OVERTAKEN_BY.as_secs();
            message["DelaySeconds"] = delay.min(SQS_DELAY_SECONDS.into()).into();
        };
        // It keeps its order.
        if is_fifo(&body) {
            return request;
        }
        match body["Entries"].as_array_mut() {
            Some(entries) => entries.iter_mut().step_by(2).for_each(delays),
            None => delays(&mut body),
        }
        *request.body_mut() = SdkBody::from(body.to_string());
        request
    }

    /// Takes the group from some messages: the embedded queues take turns between groups from the first message on, and AWS
    /// only once one of them is noisy.
    fn unfair(&self, mut request: HttpRequest) -> HttpRequest {
        if self.options.unfair == 0 {
            return request;
        }
        let mut body = body_of(&request);
        if is_fifo(&body) {
            return request;
        }
        let messages: Vec<&mut Value> = match body["Entries"].is_array() {
            true => body["Entries"].as_array_mut().into_iter().flatten().collect(),
            false => vec![&mut body],
        };
        for message in messages.into_iter().filter_map(Value::as_object_mut) {
            if self.dice.once_in(self.options.unfair) {
                message.remove("MessageGroupId");
            }
        }
        *request.body_mut() = SdkBody::from(body.to_string());
        request
    }

    /// Notes what arrived at the queues of consumers.
    fn note(&self, sent: Option<&Value>, answer: &Answer) {
        let is_taken = answer.as_ref().is_ok_and(|answer| answer.status().is_success());
        if let Some(sent) = sent.filter(|_| is_taken) {
            self.arrivals.note(sent, self.clock.now());
        }
    }
}

fn is_fifo(sent: &Value) -> bool {
    sent["QueueUrl"].as_str().is_some_and(|url| url.ends_with(".fifo"))
}

/// The answer to a call that deletes.
fn deleted(asked: &Value) -> Answer {
    let entries = asked["Entries"].as_array().into_iter().flatten();
    let done: Vec<Value> = entries.map(|entry| json!({"Id": entry["Id"]})).collect();
    json_reply(200, &json!({"Successful": done, "Failed": []}))
}

fn body_of(request: &HttpRequest) -> Value {
    serde_json::from_slice(request.body().bytes().unwrap_or_default()).unwrap_or(Value::Null)
}
