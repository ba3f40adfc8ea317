//! Delivery to event buses: PutEvents, up to ten entries to a call. Each entry is taken or not by itself.

use std::iter;

use futures::FutureExt as _;
use serde::{Deserialize, Serialize};
use tidegate_domain::arn::Arn;
use tidegate_domain::target::Target;

use super::aws_call::{self, AwsCall, UNSAID, not_taken};
use super::event::text;
use super::{Delivery, EventToSend, Sent};

/// What an entry counts beside its texts, in bytes.
const ENTRY_BYTES: usize = 128;

/// An event on its bus.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Entry {
    event_bus_name: String,
    source: String,
    detail_type: String,
    /// The event, as JSON text.
    detail: String,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Entries<'e> {
    entries: Vec<&'e Entry>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "PascalCase", default)]
struct Answer {
    entries: Vec<Put>,
}

/// What became of an entry.
#[derive(Deserialize, Default)]
#[serde(rename_all = "PascalCase", default)]
struct Put {
    event_id: Option<String>,
    error_code: Option<String>,
    error_message: Option<String>,
}

impl Put {
    fn sent(self) -> Sent {
        match (self.error_code, self.event_id) {
            (Some(code), _) => not_taken(&code, &self.error_message.unwrap_or_default(), None),
            (None, Some(_)) => Sent::Done,
            (None, None) => Sent::failed(UNSAID.to_owned()),
        }
    }
}

impl Delivery {
    /// Puts the chosen events on their buses.
    pub(super) async fn send_to_buses(
        &self,
        deliveries: &[EventToSend],
        chosen: &[usize],
    ) -> Vec<(usize, Sent)> {
        let events = aws_call::by_arn(deliveries, chosen).into_iter();
        let calls = events.flat_map(|(bus, events)| {
            aws_call::cut(events, entry).map(move |entries| self.put_entries(bus, entries).boxed())
        });
        aws_call::all(Box::new(calls)).await
    }

    async fn put_entries(&self, bus: &Arn, entries: Vec<(usize, Entry)>) -> Vec<(usize, Sent)> {
        let body = Entries { entries: entries.iter().map(|(_, entry)| entry).collect() };
        let call = AwsCall {
            to: bus,
            action: "events:PutEvents",
            path: "/".to_owned(),
            content_type: "application/x-amz-json-1.1",
            headers: &[("x-amz-target", "AWSEvents.PutEvents")],
            body: serde_json::to_string(&body).unwrap_or_default(),
        };
        let indexes = entries.iter().map(|(index, _)| *index);
        match self.aws.call(call, self.clock.now()).await {
            Err(refusal) => indexes.map(|index| (index, refusal.sent.clone())).collect(),
            Ok(answer) => {
                // In the order of the entries.
                let answer: Answer = serde_json::from_str(&answer).unwrap_or_default();
                let put = answer.entries.into_iter().map(Put::sent);
                let put = put.chain(iter::repeat_with(|| Sent::failed(UNSAID.to_owned())));
                indexes.zip(put).collect()
            }
        }
    }
}

fn entry(delivery: &EventToSend) -> (Entry, usize) {
    let (bus, source, detail_type) = match &delivery.terms.terms.target {
        Target::EventBridge { bus, label } => (bus.as_str(), label.source(), label.detail_type()),
        // Only events for buses come here.
        other => (other.address(), "", ""),
    };
    let entry = Entry {
        event_bus_name: bus.to_owned(),
        source: source.to_owned(),
        detail_type: detail_type.to_owned(),
        detail: text(&delivery.event()),
    };
    let bytes = entry.detail.len().saturating_add(entry.source.len()).saturating_add(entry.detail_type.len());
    (entry, bytes.saturating_add(ENTRY_BYTES))
}
