//! Delivery to functions: an asynchronous Invoke for each event. Lambda answers when it has the event in its own queue.

use futures::FutureExt as _;
use tidegate_domain::arn::Arn;

use super::aws_call::{self, AwsCall, encoded};
use super::event::text;
use super::{Delivery, EventToSend, Sent};

impl Delivery {
    /// Invokes the functions of the chosen events.
    pub(super) async fn send_to_functions(
        &self,
        deliveries: &[EventToSend],
        chosen: &[usize],
    ) -> Vec<(usize, Sent)> {
        let events = aws_call::by_arn(deliveries, chosen).into_iter();
        let calls = events.flat_map(|(function, events)| {
            events.into_iter().map(move |(index, delivery)| self.invoke(function, index, delivery).boxed())
        });
        aws_call::all(Box::new(calls)).await
    }

    async fn invoke(&self, function: &Arn, index: usize, delivery: &EventToSend) -> Vec<(usize, Sent)> {
        let call = AwsCall {
            to: function,
            action: "lambda:InvokeFunction",
            path: format!("/2015-03-31/functions/{}/invocations", encoded(function.as_str())),
            content_type: "application/json",
            headers: &[("x-amz-invocation-type", "Event")],
            body: text(&delivery.event()),
        };
        let sent = self.aws.call(call, self.clock.now()).await;
        vec![(index, sent.map_or_else(|refusal| refusal.sent, |_| Sent::Done))]
    }
}
