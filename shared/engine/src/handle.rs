//! A dispatch message arrives: find out what it is and do it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use futures::future::join_all;
use tidegate_domain::ids::{ClientId, JobId, PolicyId};
use tidegate_domain::sideline::SidelineOf;
use tidegate_domain::slots::Outcome;
use tidegate_domain::time::clamped;
use tidegate_domain::token::Token;
use tracing::{error, warn};

use crate::deletions::Deletions;
use crate::deliver::Delivery;
use crate::effect::Release;
use crate::effect_loop::{EffectLoop, Left};
use crate::emit::Emission;
use crate::figures::POISON;
use crate::queues::message::{ArrivalsAt, Message};
use crate::queues::{Handled, Outgoing, Queues};
use crate::samples::Samples;
use crate::tokens::Tokens;
use crate::watches::Watches;
use crate::{EngineError, Panicked, contain, deadline};

/// How often a message comes that fails for what is in it, before it is set aside.
const FAULTY_RECEIVES: u32 = 5;

/// Handles messages of the dispatch queue.
pub(crate) struct Handler {
    pub(crate) queues: Arc<Queues>,
    pub(crate) delivery: Arc<Delivery>,
    pub(crate) effects: Arc<EffectLoop>,
    pub(crate) tokens: Arc<Tokens>,
    pub(crate) emission: Arc<Emission>,
    pub(crate) deletions: Arc<Deletions>,
    pub(crate) watches: Arc<Watches>,
    /// `None`: what goes on in policies is not kept.
    pub(crate) samples: Option<Samples>,
}

impl Handler {
    /// Handles messages of the dispatch queue that were received together. `messages` are their texts, with how often each
    /// came; the answers are in their order.
    ///
    /// Messages are independent, but for those that arrive at one line at one instant and for the first time: they are
    /// handled as one, since a pack of many costs what a pack of one does. When that fails, each comes again by itself.
    /// What may have been done before is handled after what was not, so that it finds what that leaves behind.
    pub(crate) async fn handle_all(&self, messages: &[(&str, u32)]) -> Vec<Handled> {
        let mut handled = vec![Handled::Retry; messages.len()];
        let (first, again): (Vec<_>, Vec<_>) = in_company(messages).into_iter().partition(|one| !one.repeats);
        for company in [first, again] {
            // They come again, to a call that has time for them.
            if deadline::is_over(&*self.effects.clock) {
                break;
            }
            let each =
                company.into_iter().map(|one| async move { (self.handle_read(&one).await, one.places) });
            for (answer, places) in join_all(each).await {
                for place in places {
                    handled.iter_mut().skip(place).take(1).for_each(|handled| *handled = answer);
                }
            }
        }
        handled
    }

    /// Handles a message of the dispatch queue. `received` is how often it came, from 1.
    ///
    /// Messages are independent: one that cannot be read or handled stops no other.
    pub(crate) async fn handle(&self, body: &str, received: u32) -> Handled {
        self.handle_read(&Company::of(0, body, received)).await
    }

    async fn handle_read(&self, one: &Company<'_>) -> Handled {
        let message = match &one.message {
            Ok(message) => message,
            Err(error) => return self.after_error(one, error).await,
        };
        let handled = contain(|| whose(message), Box::pin(self.try_handle(message, one.received))).await;
        match handled.map_err(EngineError::from).flatten() {
            Ok(()) => Handled::Done,
            Err(EngineError::Panicked(panicked)) => self.after_panic(one, message, &panicked).await,
            Err(error) => self.after_error(one, &error).await,
        }
    }

    /// A message that failed comes again, unless it is poison, which is set aside with the reason: one that no version
    /// writes, at once; one that fails for what is in it, or for a row that it is about, when it came a few times, for the
    /// fault may be ours and be mended. One of a newer version waits for a process of that version.
    async fn after_error(&self, one: &Company<'_>, error: &EngineError) -> Handled {
        let received = one.received;
        let is_poison = match error {
            EngineError::Message { .. } => true,
            EngineError::NewerMessage { .. } => false,
            error => error.is_of_one_row() && received >= FAULTY_RECEIVES,
        };
        if !is_poison {
            warn!(%error, received, "a dispatch message comes again");
            return Handled::Retry;
        }
        error!(%error, received, { POISON } = 1_u64, "a dispatch message is poison: it goes to the dead-letter queue");
        match self.queues.set_aside(&one.text(), &error.to_string()).await {
            Ok(()) => Handled::Done,
            Err(error) => {
                warn!(%error, "it comes again");
                Handled::Retry
            }
        }
    }

    /// Sets aside what a message was about whose handling panicked, so that it does not come again and again.
    async fn after_panic(&self, one: &Company<'_>, message: &Message, panicked: &Panicked) -> Handled {
        let set_aside = contain(|| whose(message), async {
            match message {
                Message::Chunk(chunk) => self.delivery.set_aside_chunk(chunk, panicked).await,
                Message::Arrival(chunk) => self.tokens.set_aside_arrivals(chunk, panicked).await,
                Message::Event(event) => {
                    let effects = self.delivery.set_aside_granted(event, panicked).await?;
                    self.effects.carry_out(effects).await.map(drop)
                }
                // Nothing of a client's is lost with these: they come again, a few times.
                _ => Err(EngineError::Panicked(panicked.clone())),
            }
        });
        match set_aside.await.map_err(EngineError::from).flatten() {
            Ok(()) => Handled::Done,
            Err(error) => self.after_error(one, &error).await,
        }
    }

    /// Sends a message on that came before its time, for the rest of it. Says whether it was.
    async fn sends_on(
        &self,
        client: &ClientId,
        due_at: Option<DateTime<Utc>>,
        again: impl FnOnce() -> Message,
    ) -> Result<bool, EngineError> {
        let Some(due_at) = due_at.filter(|due_at| self.queues.is_early(*due_at)) else { return Ok(false) };
        self.queues.dispatch(&[Outgoing::at(client, again(), due_at)]).await?;
        Ok(true)
    }

    async fn try_handle(&self, message: &Message, received: u32) -> Result<(), EngineError> {
        let bad = |reason: String| EngineError::Message { reason };
        match message {
            Message::Chunk(chunk) => self.delivery.deliver_chunk(chunk, received).await,
            Message::Sent(sent) => self.delivery.keep_sent(sent).await,
            Message::Arrival(chunk) => self.tokens.arrive(chunk, received).await,
            Message::Event(event) => {
                let effects = self.delivery.deliver_granted(event, received).await?;
                self.effects.carry_out(effects).await.map(drop)
            }
            Message::Scan { part } => self.emission.work_on_part(part).await,
            Message::Callback(telling) => {
                let (client, run) = telling.of()?;
                let due_at = due_at(telling.due_s);
                match self.sends_on(&client, due_at, || Message::Callback(telling.clone())).await? {
                    true => Ok(()),
                    false => self.delivery.call_back(&client, &run, telling).await,
                }
            }
            Message::Look { client, job, due_s } => {
                let client: ClientId = client.parse().map_err(|e| bad(format!("'client': {e}")))?;
                let job: JobId = job.parse().map_err(|e| bad(format!("'job': {e}")))?;
                let due = DateTime::from_timestamp(*due_s, 0).map(clamped);
                let due = due.ok_or_else(|| bad("'due_s': no instant".to_owned()))?;
                self.watches.look(&client, &job, due).await
            }
            Message::Overdue(telling) => {
                let (client, run) = telling.of()?;
                let due_at = due_at(telling.due_s);
                match self.sends_on(&client, due_at, || Message::Overdue(telling.clone())).await? {
                    true => Ok(()),
                    false => self.delivery.tell_overdue(&client, &run, telling).await,
                }
            }
            Message::Wake { client, policy, due_s } => {
                let client: ClientId = client.parse().map_err(|e| bad(format!("'client': {e}")))?;
                let policy: PolicyId = policy.parse().map_err(|e| bad(format!("'policy': {e}")))?;
                let due_at = due_at(*due_s);
                let again = || Message::Wake {
                    client: client.to_string(),
                    policy: policy.to_string(),
                    due_s: *due_s,
                };
                match self.sends_on(&client, due_at, again).await? {
                    true => Ok(()),
                    // What is due in it: the tick looks after the rest.
                    false if due_at.is_some() => {
                        self.tokens.admit_paced(&client, &policy, Left::ToTheTick).await
                    }
                    false => {
                        self.tokens.reconcile_policy(&client, &policy, Left::ToTheTick).await?;
                        if let Some(samples) = &self.samples {
                            samples.keep(&client, &policy).await;
                        }
                        Ok(())
                    }
                }
            }
            Message::Drain { client, job } => {
                let client: ClientId = client.parse().map_err(|e| bad(format!("'client': {e}")))?;
                let job = job.as_ref().map(|job| job.parse()).transpose();
                let job = job.map_err(|e| bad(format!("'job': {e}")))?;
                self.delivery.drain(&client, &job.map_or(SidelineOf::Client, SidelineOf::Job)).await
            }
            Message::Delete { client, step } => {
                let client: ClientId = client.parse().map_err(|e| bad(format!("'client': {e}")))?;
                self.deletions.go_on(&client, *step).await
            }
            Message::Retain { client, policy, after } => {
                let client: ClientId = client.parse().map_err(|e| bad(format!("'client': {e}")))?;
                let policy: PolicyId = policy.parse().map_err(|e| bad(format!("'policy': {e}")))?;
                self.tokens.retain_waiting(&client, &policy, after.clone()).await
            }
            Message::Release { token, succeeded, dead, text } => {
                let token: Token = token.parse().map_err(|e| bad(format!("'token': {e}")))?;
                let outcome = match (succeeded, dead) {
                    (true, _) => Outcome::Succeeded,
                    (false, true) => Outcome::Dead,
                    (false, false) => Outcome::Failed,
                };
                let client = token.client().clone();
                self.tokens
                    .release_now(&client, vec![Release { token, outcome, text: text.clone() }])
                    .await
                    .map(drop)
            }
        }
    }
}

/// When a message is to be handled; `None`: now.
fn due_at(due_s: Option<i64>) -> Option<DateTime<Utc>> {
    due_s.and_then(|second| DateTime::from_timestamp(second, 0))
}

/// Messages that are handled as one: mostly one.
struct Company<'m> {
    /// Their places among all.
    places: Vec<usize>,
    message: Result<Message, EngineError>,
    /// As it came; of several, none.
    text: Option<&'m str>,
    received: u32,
    /// What they ask for may have been done before.
    repeats: bool,
}

impl<'m> Company<'m> {
    fn of(place: usize, text: &'m str, received: u32) -> Self {
        let message = Message::decode(text);
        let repeats = received > 1
            || matches!(&message, Ok(Message::Chunk(chunk) | Message::Arrival(chunk)) if chunk.repeat);
        Self { places: vec![place], message, text: Some(text), received, repeats }
    }

    /// The line at which it arrives for the first time, and whether it went ahead of its jobs.
    fn arrives_at(&self) -> Option<(ArrivalsAt, bool)> {
        match &self.message {
            Ok(Message::Arrival(chunk)) if !self.repeats => Some((chunk.arrivals().ok()?.0, chunk.ahead)),
            _ => None,
        }
    }

    /// Adds one that arrives at the same line.
    fn join(&mut self, other: Self) {
        if let (Ok(Message::Arrival(known)), Ok(Message::Arrival(chunk))) = (&mut self.message, other.message)
        {
            self.places.extend(other.places);
            self.text = None;
            known.as_of_ms = known.as_of_ms.min(chunk.as_of_ms);
            known.items.extend(chunk.items);
        }
    }

    /// What could be sent for them.
    fn text(&self) -> Cow<'m, str> {
        match (self.text, &self.message) {
            (None, Ok(message)) => message.encode().into(),
            (text, _) => text.unwrap_or_default().into(),
        }
    }
}

fn in_company<'m>(messages: &[(&'m str, u32)]) -> Vec<Company<'m>> {
    let mut arrivals: BTreeMap<_, Company<'_>> = BTreeMap::new();
    let mut all = Vec::new();
    for (place, (text, received)) in messages.iter().enumerate() {
        let one = Company::of(place, text, *received);
        match one.arrives_at() {
            Some(line) => match arrivals.entry(line) {
                Entry::Vacant(first) => drop(first.insert(one)),
                Entry::Occupied(known) => known.into_mut().join(one),
            },
            None => all.push(one),
        }
    }
    all.extend(arrivals.into_values());
    all
}

/// What a message is about, for the log.
fn whose(message: &Message) -> String {
    let text = |text: &str| text.chars().take(200).collect::<String>();
    match message {
        Message::Chunk(chunk) | Message::Arrival(chunk) => {
            let job = chunk.items.first().map_or("", |item| &*item.job);
            format!("client {}, job {}", text(&chunk.client), text(job))
        }
        Message::Sent(sent) => format!("client {}, a chunk that was sent", text(&sent.chunk.client)),
        Message::Event(event) => format!("pack {}, token {}", text(&event.pack), text(&event.token)),
        Message::Callback(telling) | Message::Overdue(telling) => {
            format!("client {}, run {}", text(&telling.client), text(&telling.run))
        }
        Message::Look { client, job, .. } => format!("client {}, job {}", text(client), text(job)),
        Message::Wake { client, policy, .. } | Message::Retain { client, policy, .. } => {
            format!("client {}, policy {}", text(client), text(policy))
        }
        Message::Drain { client, .. } => format!("client {}, what was sidelined", text(client)),
        Message::Delete { client, .. } => format!("client {}, which is being deleted", text(client)),
        Message::Release { token, .. } => format!("token {}", text(token)),
        Message::Scan { part } => format!("part {}", text(part)),
    }
}
