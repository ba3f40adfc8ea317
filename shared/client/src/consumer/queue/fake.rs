//! A queue whose messages become visible by Tokio's clock, which tests pause.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::messages::{Message, Queue, Received};
use crate::consumer::calls::Boxed;

#[derive(Debug)]
pub(super) struct FakeQueue {
    started: Instant,
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    messages: Vec<Stored>,
    /// When each receive came, and how many messages it wanted.
    receives: Vec<(Duration, usize)>,
    failures: VecDeque<&'static str>,
    deletes: Vec<usize>,
}

#[derive(Debug, Clone)]
pub(super) struct Stored {
    body: String,
    visible_at: Instant,
    pub(super) deleted_at: Option<Duration>,
    pub(super) receive_count: u32,
    /// Each time-out that it was given, from its receive on, and when.
    pub(super) visibility: Vec<(Duration, Duration)>,
}

impl FakeQueue {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self { started: Instant::now(), state: Mutex::default(), changed: Notify::new() })
    }

    /// Sends a message, and tells its place.
    pub(super) fn send(&self, body: impl ToString) -> usize {
        self.send_received_before(body, 0)
    }

    /// Sends a message that others have received so many times.
    pub(super) fn send_received_before(&self, body: impl ToString, receive_count: u32) -> usize {
        let mut state = self.state.lock().unwrap();
        let (body, visible_at) = (body.to_string(), Instant::now());
        let stored = Stored { body, visible_at, deleted_at: None, receive_count, visibility: Vec::new() };
        state.messages.push(stored);
        self.changed.notify_one();
        state.messages.len() - 1
    }

    /// The next receives fail.
    pub(super) fn fail(&self, failures: impl IntoIterator<Item = &'static str>) {
        self.state.lock().unwrap().failures.extend(failures);
    }

    pub(super) fn stored(&self, place: usize) -> Stored {
        self.state.lock().unwrap().messages[place].clone()
    }

    /// When each message was deleted.
    pub(super) fn deleted_at(&self) -> Vec<Option<Duration>> {
        self.state.lock().unwrap().messages.iter().map(|stored| stored.deleted_at).collect()
    }

    pub(super) fn receives(&self) -> Vec<(Duration, usize)> {
        self.state.lock().unwrap().receives.clone()
    }

    /// How many messages each delete had.
    pub(super) fn deletes(&self) -> Vec<usize> {
        self.state.lock().unwrap().deletes.clone()
    }

    fn take(&self, most: usize, visibility: Duration) -> Vec<Received> {
        let (now, at) = (Instant::now(), self.started.elapsed());
        let mut state = self.state.lock().unwrap();
        let visible = |stored: &Stored| stored.deleted_at.is_none() && stored.visible_at <= now;
        let taken = state.messages.iter_mut().enumerate().filter(|(_, stored)| visible(stored)).take(most);
        taken
            .map(|(place, stored)| {
                stored.receive_count += 1;
                stored.visible_at = now + visibility;
                stored.visibility.push((at, visibility));
                let (message_id, receipt_handle) = (format!("message-{place}"), place.to_string());
                Received {
                    message: Message { message_id, receipt_handle },
                    body: stored.body.clone(),
                    receive_count: stored.receive_count,
                }
            })
            .collect()
    }

    fn next_visible_at(&self) -> Option<Instant> {
        let state = self.state.lock().unwrap();
        state
            .messages
            .iter()
            .filter(|stored| stored.deleted_at.is_none())
            .map(|stored| stored.visible_at)
            .min()
    }

    fn change(&self, messages: &[Message], change: impl Fn(&mut Stored, Duration)) {
        let mut state = self.state.lock().unwrap();
        for message in messages {
            let place: usize = message.receipt_handle.parse().unwrap();
            change(&mut state.messages[place], self.started.elapsed());
        }
        self.changed.notify_one();
    }
}

impl Queue for FakeQueue {
    fn receive(
        &self,
        most: usize,
        wait: Duration,
        visibility: Duration,
    ) -> Boxed<'_, Result<Vec<Received>, String>> {
        let failure = {
            let mut state = self.state.lock().unwrap();
            state.receives.push((self.started.elapsed(), most));
            state.failures.pop_front()
        };
        Box::pin(async move {
            if let Some(failure) = failure {
                return Err(failure.to_owned());
            }
            let deadline = Instant::now() + wait;
            loop {
                let taken = self.take(most.min(10), visibility);
                if !taken.is_empty() || Instant::now() >= deadline {
                    return Ok(taken);
                }
                let next = self.next_visible_at().map_or(deadline, |at| at.min(deadline));
                tokio::select! {
                    () = sleep_until(next) => {}
                    () = self.changed.notified() => {}
                }
            }
        })
    }

    fn delete<'a>(&'a self, messages: &'a [Message]) -> Boxed<'a, ()> {
        self.state.lock().unwrap().deletes.push(messages.len());
        self.change(messages, |stored, at| stored.deleted_at = Some(at));
        Box::pin(async {})
    }

    fn set_visibility<'a>(&'a self, messages: &'a [Message], after: Duration) -> Boxed<'a, ()> {
        self.change(messages, |stored, at| {
            stored.visible_at = Instant::now() + after;
            stored.visibility.push((at, after));
        });
        Box::pin(async {})
    }
}
