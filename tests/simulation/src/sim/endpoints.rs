//! Endpoints of a history, without a network: what they are sent comes to consumers as what queues hold does.
//!
//! Some calls are not taken, some are told to wait, and of some the answer is lost. Once the faults have stopped, every call is taken.

use std::sync::{Arc, Mutex, PoisonError};

use futures::future::BoxFuture;
use tidegate_engine::{Callee, CalleeAnswer};

use super::chaos::{Chaos, pause};
use super::coverage::CoveredFault;
use super::dice::Dice;
use super::mix::{self, Answer};

/// One whose answer leaves the token with whoever works on the event, and one whose answer releases it.
const LATER: &str = "https://endpoint.test/later";
const DONE: &str = "https://endpoint.test/done";

/// A call that an endpoint took.
pub(crate) struct Taken {
    pub(crate) body: String,
    /// Whether it says so: the answer may be lost on its way.
    pub(crate) says_so: bool,
    /// Whether the answer releases the token.
    pub(crate) releases: bool,
}

/// All endpoints of a history.
pub(crate) struct Endpoints {
    dice: Dice,
    chaos: Arc<Chaos>,
    taken: Mutex<Vec<Taken>>,
}

impl Endpoints {
    pub(crate) fn new(dice: Dice, chaos: &Arc<Chaos>) -> Arc<Self> {
        Arc::new(Self { dice, chaos: Arc::clone(chaos), taken: Mutex::default() })
    }

    /// The URL of one of them, or of none: then the event goes elsewhere.
    pub(crate) fn draw_url(&self) -> Option<&'static str> {
        self.dice.chance(mix::ENDPOINTS).then(|| if self.dice.chance(500) { LATER } else { DONE })
    }

    /// What was taken since the last look.
    pub(crate) fn take(&self) -> Vec<Taken> {
        std::mem::take(&mut self.taken.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn took(&self, url: &str, body: &str, says_so: bool) {
        let taken = Taken { body: body.to_owned(), says_so, releases: releases(url) };
        self.taken.lock().unwrap_or_else(PoisonError::into_inner).push(taken);
        self.chaos.count(CoveredFault::Called);
    }

    fn draw_answer(&self) -> Answer {
        if self.chaos.is_quiet() { Answer::Taken } else { *self.dice.weighted(&mix::ANSWERS) }
    }
}

/// Whether the answer of an endpoint releases the token.
pub(crate) fn releases(url: &str) -> bool {
    url == DONE
}

impl Callee for Endpoints {
    fn answer<'a>(&'a self, url: &'a str, _: &'a str, body: &'a str) -> BoxFuture<'a, Option<CalleeAnswer>> {
        Box::pin(async move {
            pause(&self.chaos).await;
            let says = |status, retry_after| Some(CalleeAnswer { status, retry_after });
            let answer = match self.draw_answer() {
                Answer::Taken => {
                    self.took(url, body, true);
                    says(204, None)
                }
                Answer::TakenAndLost => {
                    self.took(url, body, false);
                    self.chaos.count(CoveredFault::AnswerLost);
                    None
                }
                Answer::Unreachable => None,
                Answer::Fails => says(500, None),
                Answer::Busy => says(503, None),
                Answer::BusyFor => says(503, Some(self.dice.within(mix::BUSY_FOR).to_string())),
                Answer::Refuses => says(404, None),
            };
            if answer.as_ref().is_none_or(|answer| answer.status != 204) {
                self.chaos.count(CoveredFault::NotTaken);
            }
            pause(&self.chaos).await;
            answer
        })
    }
}
