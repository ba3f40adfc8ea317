//! Messages of our own queues: every kind, sound or spoilt, with wild numbers, other versions and other clients' names.
//!
//! Deliberately absent: messages that say of a neighbour's own runs that they are over. Only somebody who may write to the
//! dispatch queue could send them, and what that queue says is believed.

use anyhow::Result;
use serde_json::{Value, json};
use tidegate_engine::message::{Chunk, ChunkItem, GrantedEvent, Message, SentChunk, Telling, Undelivered};
use tidegate_simulation::sim::Dice;

use crate::extremes::{any_of, numbers};
use crate::json::Json;
use crate::known::Known;
use crate::schema::mutate;

/// Messages that are sent as they are drawn, in thousandths.
const UNSPOILT: u64 = 150;
/// Most changes to one message.
const CHANGES: u64 = 4;
/// Where a delivery may be tried: see [`crate::extremes::addresses`].
const SAFE: &[&str] = &["http://127.0.0.1:", "http://[::1]:1/"];

/// The kinds of messages of the dispatch and scan queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Events that nothing throttles.
    Chunk,
    /// What became of events that were sent.
    Sent,
    /// A look after a policy.
    Wake,
    /// A look at what has waited for long.
    Retain,
    /// Single events that arrive at a line.
    Arrival,
    /// A part of a scan.
    Scan,
    /// An event that holds a token.
    Event,
    /// The end of a run.
    Callback,
    /// A release that is tried again.
    Release,
    /// What was sidelined drains.
    Drain,
    /// A step of the deletion of a client.
    Delete,
    /// A look at launches that should be over.
    Look,
    /// A launch that was not over in time.
    Overdue,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 13] = [
        Self::Chunk,
        Self::Sent,
        Self::Arrival,
        Self::Wake,
        Self::Retain,
        Self::Scan,
        Self::Event,
        Self::Callback,
        Self::Release,
        Self::Drain,
        Self::Delete,
        Self::Look,
        Self::Overdue,
    ];

    /// The kind of a message. A new one does not compile until it is listed here, and then it is drawn.
    pub fn of(message: &Message) -> Self {
        match message {
            Message::Chunk(_) => Self::Chunk,
            Message::Sent(_) => Self::Sent,
            Message::Arrival(_) => Self::Arrival,
            Message::Wake { .. } => Self::Wake,
            Message::Retain { .. } => Self::Retain,
            Message::Scan { .. } => Self::Scan,
            Message::Event(_) => Self::Event,
            Message::Callback(_) => Self::Callback,
            Message::Release { .. } => Self::Release,
            Message::Drain { .. } => Self::Drain,
            Message::Delete { .. } => Self::Delete,
            Message::Look { .. } => Self::Look,
            Message::Overdue(_) => Self::Overdue,
        }
    }
}

/// A message of the dispatch or scan queue. `now_s` is the present, in seconds since the epoch.
///
/// # Errors
/// When a sound message cannot be built.
pub fn dispatch(dice: &Dice, known: &Known, now_s: i64) -> Result<Json> {
    // Half of them chunks, which say most.
    let kind = dice.pick(&Kind::ALL).copied().filter(|_| dice.chance(600)).unwrap_or(Kind::Chunk);
    let sound = sound(kind, dice, known, now_s)?.encode();
    let mut message = Json::from(&serde_json::from_str::<Value>(&sound)?);
    spoil(dice, &mut message, known);
    Ok(message)
}

/// A message of the release queue.
pub fn release(dice: &Dice, known: &Known) -> Json {
    let tokens: Vec<Value> = (0..dice.within(1..=4))
        .map(|_| match (known.tokens.any(dice), dice.below(4)) {
            (token, 0 | 1) => json!(token),
            (token, 2) => json!({"token": token, "outcome": "succeeded", "result": "done"}),
            (token, _) => json!({"token": token, "outcome": "failed", "error": "no disk"}),
        })
        .collect();
    let mut message = Json::from(&json!({"client_id": client(dice), "tokens": tokens}));
    spoil(dice, &mut message, known);
    message
}

/// A chunk of one event for an address, due now.
///
/// # Errors
/// When it cannot be built.
pub fn chunk_to(target: Value, job: &str, now_s: i64, events: u32) -> Result<Message> {
    let mut terms = json!({"n": events, "b": "{}", "m": 2});
    if let (Value::Object(terms), Value::Object(target)) = (&mut terms, target) {
        terms.extend(target);
    }
    let terms = serde_json::from_value(terms)?;
    let item =
        ChunkItem { job: job.to_owned(), revision: 1, from: 0, to: events, terms, rest: Default::default() };
    let (client, as_of_ms) = ("acme".to_owned(), now_s * 1_000);
    Ok(Message::Chunk(Chunk {
        client,
        launch_s: now_s,
        as_of_ms,
        repeat: false,
        ahead: false,
        placed: false,
        attempt: 1,
        failing_since_s: None,
        not_before_ms: None,
        items: vec![item],
        rest: Default::default(),
    }))
}

fn spoil(dice: &Dice, message: &mut Json, known: &Known) {
    if !dice.chance(UNSPOILT) {
        for _ in 0..dice.within(1..=CHANGES) {
            mutate(dice, message, known);
        }
    }
    message.each_member(&mut |name, value| {
        if let ("u" | "url", Json::Text(text)) = (name, value)
            && text.contains("://")
            && !SAFE.iter().any(|safe| text.starts_with(safe))
        {
            "http://127.0.0.1:1/".clone_into(text);
        }
    });
}

/// A client: that of the requests, most often; a neighbour; nobody.
fn client(dice: &Dice) -> String {
    any_of(dice, &["acme", "acme", "acme", "acme", "beta", "gamma", "nobody"])
}

/// A chunk of nobody's, as a first attempt has it.
fn bare(items: Vec<ChunkItem>, now_s: i64) -> Chunk {
    Chunk {
        client: String::new(),
        launch_s: now_s,
        as_of_ms: now_s * 1_000,
        repeat: false,
        ahead: false,
        placed: false,
        attempt: 1,
        failing_since_s: None,
        not_before_ms: None,
        items,
        rest: Default::default(),
    }
}

fn sound(kind: Kind, dice: &Dice, known: &Known, now_s: i64) -> Result<Message> {
    let client = client(dice);
    let launch_s = if dice.chance(200) { numbers::whole(dice) } else { now_s - dice.below(120) as i64 };
    Ok(match kind {
        Kind::Chunk => {
            let items = (0..dice.within(1..=3)).map(|_| item(dice, known)).collect::<Result<Vec<_>>>()?;
            let (repeat, attempt) = (dice.chance(200), dice.within(1..=6) as u8);
            let ahead = dice.chance(200);
            let chunk = Chunk { client, launch_s, repeat, ahead, attempt, ..bare(items, now_s) };
            let failing_since_s = dice.chance(300).then(|| numbers::whole(dice));
            let not_before_ms = dice.chance(200).then(|| numbers::whole(dice));
            Message::Chunk(Chunk { failing_since_s, not_before_ms, ..chunk })
        }
        Kind::Arrival => {
            let policy = known.policies.any(dice);
            let mut items = (0..dice.within(1..=3)).map(|_| item(dice, known)).collect::<Result<Vec<_>>>()?;
            for item in &mut items {
                let mut terms = serde_json::to_value(&item.terms)?;
                (terms["n"], terms["p"]) = (json!(1), json!(policy));
                (item.from, item.to, item.terms) = (0, 1, serde_json::from_value(terms)?);
            }
            let (repeat, ahead) = (dice.chance(200), dice.chance(200));
            Message::Arrival(Chunk { client, launch_s, repeat, ahead, ..bare(items, now_s) })
        }
        Kind::Sent => {
            let items = (0..dice.within(1..=3)).map(|_| item(dice, known)).collect::<Result<Vec<_>>>()?;
            let attempt = dice.within(1..=6) as u8;
            let chunk = Chunk { client, launch_s, attempt, ..bare(items, now_s) };
            let at_ms = if dice.chance(300) { numbers::whole(dice) } else { now_s * 1_000 };
            let undelivered = (0..dice.below(4)).map(|_| Undelivered {
                place: numbers::whole(dice) as u32,
                reason: dice.chance(500).then(|| "no such queue".to_owned()),
            });
            let undelivered = undelivered.collect();
            let mark = dice.chance(500).then(|| known.runs.any(dice));
            Message::Sent(SentChunk { chunk, at_ms, mark, undelivered })
        }
        Kind::Wake => {
            let policy = if client == "acme" { known.policies.any(dice) } else { "one".to_owned() };
            Message::Wake { client, policy, due_s: dice.chance(600).then_some(launch_s) }
        }
        Kind::Retain => {
            let policy = if client == "acme" { known.policies.any(dice) } else { "one".to_owned() };
            let after = dice.chance(500).then(|| any_of(dice, &["", "x", "5|001790000000|~~", "\u{0}"]));
            Message::Retain { client, policy, after }
        }
        Kind::Delete => Message::Delete { client, step: dice.within(0..=3) },
        Kind::Drain => {
            let job = dice.chance(500).then(|| any_of(dice, &["", "x", "nightly", "\u{0}"]));
            Message::Drain { client, job }
        }
        Kind::Scan => {
            Message::Scan { part: any_of(dice, &["", "x", "UTC|H:03|0", "AT|1|0|1|2", "\u{0}", "part|1"]) }
        }
        Kind::Event => Message::Event(GrantedEvent {
            pack: match dice.chance(700) {
                true => known.runs.any(dice),
                false => any_of(dice, &["~29921044.5.1.0", "~0.0.1.0", "~x", "~29921044.5.1.4294967295"]),
            },
            recheck: dice.chance(300),
            history_days: dice
                .chance(200)
                .then(|| dice.pick(&[0, 1, 90, 365, 366, u16::MAX]).copied().unwrap_or_default()),
            token: known.tokens.any(dice),
            lease_end_ms: if dice.chance(300) { numbers::whole(dice) } else { (now_s + 60) * 1_000 },
            attempt: dice.within(1..=6) as u8,
            failures: dice.pick(&[0, 0, 1, 4, 5, 19, 20, 254, 255]).copied().unwrap_or_default(),
            failing_since_s: dice.chance(300).then(|| numbers::whole(dice)),
            rest: Default::default(),
        }),
        Kind::Callback => Message::Callback(Telling {
            client,
            run: known.runs.any(dice),
            failures: dice.pick(&[0, 0, 1, 4, 19, 20, 254, 255]).copied().unwrap_or_default(),
            due_s: dice.chance(300).then(|| numbers::whole(dice)),
            heartbeat: false,
        }),
        Kind::Look => {
            let due_s = if dice.chance(300) { numbers::whole(dice) } else { now_s };
            Message::Look { client, job: known.jobs.any(dice), due_s }
        }
        Kind::Overdue => Message::Overdue(Telling {
            client,
            run: known.runs.any(dice),
            failures: dice.pick(&[0, 0, 1, 19, 255]).copied().unwrap_or_default(),
            due_s: dice.chance(300).then(|| numbers::whole(dice)),
            heartbeat: false,
        }),
        Kind::Release => Message::Release {
            token: known.tokens.any(dice),
            succeeded: dice.chance(500),
            dead: dice.chance(200),
            text: dice.chance(300).then(|| "done".to_owned()),
        },
    })
}

fn item(dice: &Dice, known: &Known) -> Result<ChunkItem> {
    let events = dice.within(1..=4) as u32;
    let mut terms = json!({"n": events, "b": r#"{"shop":7}"#, "m": 3});
    let address =
        if dice.chance(800) { ("q", known.queue_url.as_str()) } else { ("u", known.endpoint.as_str()) };
    terms[address.0] = json!(address.1);
    match dice.below(6) {
        0 => terms["r"] = json!(dice.within(1..=600)),
        1 => terms["w"] = json!({"c": 2, "p": 1, "o": "s", "s": 60, "x": true, "f": 3}),
        2 => terms["w"] = json!({"e": (numbers::whole(dice)), "v": true, "r": true}),
        3 => terms["p"] = json!(known.policies.any(dice)),
        _ => {}
    }
    let terms = serde_json::from_value(terms)?;
    Ok(ChunkItem {
        job: known.jobs.any(dice),
        revision: dice.within(1..=3) as u32,
        from: 0,
        to: events,
        terms,
        rest: Default::default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_drawn_and_reads_back_as_what_it_is() {
        let (dice, known) = (Dice::new(1), Known::default());
        for kind in Kind::ALL {
            let message = sound(kind, &dice, &known, 1_795_262_400).unwrap();
            assert_eq!(Kind::of(&Message::decode(&message.encode()).unwrap()), kind);
        }
    }

    #[test]
    fn no_message_names_an_address_of_another_machine() {
        let dice = Dice::new(2);
        let mut message = Json::from(
            &json!({"i": [{"d": {"u": "http://example.invalid/"}}, {"u": "http://127.0.0.1:1/x"}]}),
        );
        spoil(&Dice::new(3), &mut message, &Known::default());
        for _ in 0..2_000 {
            let text = dispatch(&dice, &Known::default(), 0).unwrap().to_string();
            assert!(!text.contains("example"), "{text}");
        }
        assert!(!message.to_string().contains("example"), "{message}");
    }
}
