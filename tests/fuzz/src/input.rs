//! One input, whichever entry it goes to.

use std::fmt;

use anyhow::Result;
use tidegate_simulation::sim::Dice;

use crate::json::Json;
use crate::known::Known;
use crate::messages;
use crate::numbers::{
    ANSWERS_PER_MINUTE, INPUTS_PER_MINUTE, MESSAGES_PER_MINUTE, QUEUE_ANSWERS_PER_MINUTE, RELEASES_PER_MINUTE,
};
use crate::schema::{Document, Request};
use crate::targets::{Answer, QueueAnswer};

/// Longest text of an input that a failure tells whole, in bytes.
const TOLD_BYTES: usize = 6_000;

/// One input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// A request to the API.
    Request(Request),
    /// A message of the dispatch or scan queue, with how often it came.
    Message(Json, u32),
    /// Messages of the release queue that came together.
    Releases(Vec<Json>),
    /// What an HTTP endpoint answers to a delivery.
    Answer(Answer),
    /// What SQS answers to a delivery.
    QueueAnswer(QueueAnswer),
}

impl Input {
    /// Draws the `number`-th input of a minute.
    ///
    /// # Errors
    /// When a sound message cannot be built.
    pub fn draw(number: u64, dice: &Dice, document: &Document, known: &Known, now_s: i64) -> Result<Self> {
        // The kinds take turns, so that they meet each other's leavings.
        let mut place = number * 17 % INPUTS_PER_MINUTE;
        let mut is_among = |count: u64| {
            let is = place < count;
            place = place.saturating_sub(count);
            is
        };
        if is_among(MESSAGES_PER_MINUTE) {
            return Ok(Self::Message(messages::dispatch(dice, known, now_s)?, dice.within(1..=6) as u32));
        }
        if is_among(RELEASES_PER_MINUTE) {
            let count = dice.within(1..=10);
            return Ok(Self::Releases((0..count).map(|_| messages::release(dice, known)).collect()));
        }
        if is_among(ANSWERS_PER_MINUTE) {
            return Ok(Self::Answer(Answer::draw(dice)));
        }
        if is_among(QUEUE_ANSWERS_PER_MINUTE) {
            return Ok(Self::QueueAnswer(QueueAnswer::draw(dice)));
        }
        Request::draw(dice, document, known).map(Self::Request).ok_or_else(|| anyhow::anyhow!("no route"))
    }
}

impl fmt::Display for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::Request(request) => request.to_string(),
            Self::Message(body, received) => {
                format!("a dispatch message, received {received} times:\n{body}")
            }
            Self::Releases(bodies) => {
                let bodies: Vec<String> = bodies.iter().map(Json::to_string).collect();
                format!("messages of the release queue:\n{}", bodies.join("\n"))
            }
            Self::Answer(answer) => answer.to_string(),
            Self::QueueAnswer(answer) => answer.to_string(),
        };
        if text.len() <= TOLD_BYTES {
            return f.write_str(&text);
        }
        let head = text.floor_char_boundary(TOLD_BYTES / 2);
        let tail = text.ceil_char_boundary(text.len() - TOLD_BYTES / 2);
        write!(f, "{} .. ({} bytes more) .. {}", &text[..head], tail - head, &text[tail..])
    }
}
