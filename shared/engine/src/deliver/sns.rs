//! Delivery to topics: PublishBatch, up to ten messages to a call. Each message is taken or not by itself.
//!
//! SNS takes forms and answers with XML. Only a message that the answer lists as published counts as sent.

use std::collections::BTreeMap;

use futures::FutureExt as _;
use tidegate_calls::Attribute;
use tidegate_domain::arn::Arn;

use super::aws_call::{self, AwsCall, UNSAID, element, encoded, inside, not_taken};
use super::event;
use super::sqs::deduplication_id;
use super::{Delivery, EventToSend, Sent, fifo};
use crate::outgoing::sqs_text;

/// A message, as names and values of a form; the names as they are within its entry.
type Fields = Vec<(String, String)>;

impl Delivery {
    /// Publishes the chosen events to their topics.
    pub(super) async fn send_to_topics(
        &self,
        deliveries: &[EventToSend],
        chosen: &[usize],
    ) -> Vec<(usize, Sent)> {
        let events = aws_call::by_arn(deliveries, chosen).into_iter();
        let calls = events.flat_map(|(topic, events)| {
            let is_fifo = topic.as_str().ends_with(".fifo");
            let messages = aws_call::cut(events, move |delivery| message(delivery, is_fifo));
            messages.map(move |messages| self.publish(topic, messages).boxed())
        });
        aws_call::all(Box::new(calls)).await
    }

    async fn publish(&self, topic: &Arn, messages: Vec<(usize, Fields)>) -> Vec<(usize, Sent)> {
        let call = AwsCall {
            to: topic,
            action: "sns:Publish",
            path: "/".to_owned(),
            content_type: "application/x-www-form-urlencoded",
            headers: &[],
            body: form(topic.as_str(), &messages),
        };
        let indexes = messages.iter().map(|(index, _)| *index);
        match self.aws.call(call, self.clock.now()).await {
            Err(refusal) => indexes.map(|index| (index, refusal.sent.clone())).collect(),
            Ok(answer) => {
                let mut said = said(&answer);
                let unsaid = || Sent::failed(UNSAID.to_owned());
                indexes.map(|index| (index, said.remove(&index).unwrap_or_else(unsaid))).collect()
            }
        }
    }
}

/// The fields of a message, with its size in bytes.
fn message(delivery: &EventToSend, is_fifo: bool) -> (Fields, usize) {
    let event = delivery.event();
    let attributes = event::attributes(&event, delivery.traceparent());
    let body = sqs_text(event::text(&event));
    let bytes = attributes.iter().map(Attribute::size).fold(body.len(), usize::saturating_add);
    let mut fields = vec![("Message".to_owned(), body)];
    for (number, Attribute { name, kind, value }) in (1..).zip(attributes) {
        let field = |field: &str| format!("MessageAttributes.entry.{number}.{field}");
        fields.push((field("Name"), name.to_owned()));
        fields.push((field("Value.DataType"), kind.to_owned()));
        fields.push((field("Value.StringValue"), value));
    }
    if is_fifo {
        let EventToSend { client, event, hand_over, .. } = delivery;
        fields.push(("MessageGroupId".to_owned(), fifo::group_id(client, event.run().job())));
        fields.push(("MessageDeduplicationId".to_owned(), deduplication_id(client, event, *hand_over)));
    }
    (fields, bytes)
}

fn form(topic: &str, entries: &[(usize, Fields)]) -> String {
    let mut form = format!("Action=PublishBatch&Version=2010-03-31&TopicArn={}", encoded(topic));
    for (number, (index, fields)) in (1..).zip(entries) {
        let entry = format!("&PublishBatchRequestEntries.member.{number}");
        form.push_str(&format!("{entry}.Id={index}"));
        for (name, value) in fields {
            form.push_str(&format!("{entry}.{name}={}", encoded(value)));
        }
    }
    form
}

/// What an answer says of the messages that it lists, by their ids.
fn said(answer: &str) -> BTreeMap<usize, Sent> {
    let members = |list: &str| -> Vec<String> {
        let list = inside(answer, list).unwrap_or_default();
        list.split("</member>").map(str::to_owned).collect()
    };
    let id = |member: &str| element(member, "Id")?.parse().ok();
    let published = members("Successful").into_iter().filter_map(|member| Some((id(&member)?, Sent::Done)));
    let failed = members("Failed").into_iter().filter_map(|member| {
        let text = |name| element(&member, name).unwrap_or_default();
        Some((id(&member)?, not_taken(&text("Code"), &text("Message"), None)))
    });
    // What is listed in both was not published for sure.
    published.chain(failed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_listed_as_published_was() {
        let answer = r#"<PublishBatchResponse xmlns="http://sns.amazonaws.com/doc/2010-03-31/"><PublishBatchResult>
            <Failed><member><Id>7</Id><Code>InternalError</Code><Message>a &amp; b</Message><SenderFault>false</SenderFault></member>
            <member><Id>9</Id><Code>InvalidParameter</Code><Message>no</Message><SenderFault>true</SenderFault></member></Failed>
            <Successful><member><Id>8</Id><MessageId>m</MessageId></member></Successful></PublishBatchResult></PublishBatchResponse>"#;
        let said = said(answer);
        assert_eq!(said.len(), 3);
        assert_eq!(said[&8], Sent::Done);
        assert_eq!(said[&7], Sent::failed("InternalError: a & b".to_owned()));
        assert_eq!(said[&9], Sent::Refused { reason: "InvalidParameter: no".to_owned() });
        for nothing in ["", "<html>", "<Successful/>", "<Successful><member><Id>x</Id></member></Successful>"]
        {
            assert!(super::said(nothing).is_empty(), "{nothing}");
        }
    }
}
