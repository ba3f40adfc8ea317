//! The processes of a history: engines, and the calls that are under way in them.
//!
//! A call is a future that is polled by hand, a few requests at a time, so that others come in between. Its process can
//! die at any request, and a call that takes longer than its function may run is cut off.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use aws_sdk_sqs::Client as Sqs;
use chrono::{DateTime, Utc};
use tidegate_domain::ids::{ClientId, PolicyId};
use tidegate_domain::job::Job;
use tidegate_domain::policy::Policy;
use tidegate_domain::token::Token;
use tidegate_engine::{Engine, EngineError, Extended, Handled, JobDelete, Released, TickReport, Written};
use tidegate_testkit::queue;

use super::letters::Answers;

/// What came of a call.
pub(crate) enum Done {
    Ticked(Result<TickReport, EngineError>),
    Pumped { handled: Vec<(String, Handled)>, treatment: Treatment },
    Put { answers: Vec<(usize, Result<Written<Job>, EngineError>)> },
    Deleted { job: usize, result: Result<JobDelete, EngineError> },
    Changed { policy: usize, result: Result<Written<Policy>, EngineError> },
    Released { asked: Vec<Token>, result: Result<Vec<(Token, Released)>, EngineError> },
    Extended { result: Result<Vec<(Token, Extended)>, EngineError> },
    Operated { client: ClientId, redrives: Result<Answers, EngineError> },
}

type Running = Pin<Box<dyn Future<Output = Done> + Send>>;

/// A call that is under way.
pub(crate) struct Op {
    pub(crate) process: usize,
    pub(crate) name: String,
    pub(crate) cut_off_at: DateTime<Utc>,
    pub(crate) about: About,
    future: Running,
}

/// Who must be told when a call ends without an answer.
#[derive(Debug, Clone)]
pub(crate) enum About {
    Nobody,
    Tick,
    Jobs(Vec<usize>),
    Policy(usize),
    Tokens(Vec<Token>),
}

impl Op {
    /// Goes on until the next request, or to the end.
    pub(crate) fn poll(&mut self) -> Option<Done> {
        match self.future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(done) => Some(done),
            Poll::Pending => None,
        }
    }
}

/// A call, before it begins.
pub(crate) struct Call {
    pub(crate) process: usize,
    pub(crate) name: String,
    pub(crate) about: About,
    /// How long its function may run.
    pub(crate) seconds: i64,
}

impl Call {
    pub(crate) fn begin(self, now: DateTime<Utc>, future: impl Future<Output = Done> + Send + 'static) -> Op {
        let Self { process, name, about, seconds } = self;
        let cut_off_at = now + chrono::Duration::seconds(seconds);
        Op { process, name, cut_off_at, about, future: Box::pin(future) }
    }
}

/// How a poller treats the messages that it handled.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Treatment {
    /// How often they are handled, as SQS may deliver them more than once.
    pub(crate) times: u64,
    /// Their deletion is forgotten.
    pub(crate) undeleted: bool,
}

/// One round of a poller: up to ten messages are received, handled and deleted.
pub(crate) async fn poll_round(engine: Engine, sqs: Sqs, url: String, treatment: Treatment) -> Done {
    let messages = queue::receive(&sqs, &url).await.unwrap_or_default();
    let texts: Vec<_> =
        messages.iter().map(|m| (m.body().unwrap_or_default(), queue::receive_count(m))).collect();
    let mut outcomes = vec![Handled::Retry; messages.len()];
    for _ in 0..treatment.times {
        outcomes = engine.handle_all(&texts).await;
    }
    let handled = texts.iter().map(|(body, _)| (*body).to_owned()).zip(outcomes.iter().copied()).collect();
    let is_done = |(_, outcome): &(&_, Handled)| *outcome == Handled::Done;
    let done: Vec<_> = messages.iter().zip(outcomes).filter(is_done).map(|(m, _)| m.clone()).collect();
    if !treatment.undeleted {
        // A deletion that fails makes the message come again.
        let _ignored = queue::delete(&sqs, &url, &done).await;
    }
    Done::Pumped { handled, treatment }
}

/// A policy is created before the history begins.
pub(crate) async fn create_policy(
    engine: &Engine,
    client: &ClientId,
    id: &PolicyId,
    terms: tidegate_domain::policy::PolicyTerms,
) -> anyhow::Result<()> {
    engine.policies().create(client, id.clone(), terms).await?;
    Ok(())
}
