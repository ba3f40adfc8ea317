//! What a consumer of Tidegate uses: the delivered [`Event`], loops that work on events, [`Client::release`], a
//! [`Heartbeat`] for long work, and typed calls for the rest of the API.
//!
//! | events come | what works on them |
//! | --- | --- |
//! | in a queue of SQS | `QueueConsumer`, with the feature `sqs` |
//! | to a Lambda function with an SQS event source | [`LambdaConsumer`] |
//! | to a webhook | `WebhookVerifier`, with the feature `webhook` |
//!
//! They repeat their calls, extend leases and release tokens. Who would rather do that by themselves makes the calls:
//!
//! ```no_run
//! use tidegate_client::{Client, Event, Outcome};
//!
//! # async fn work(event: &Event) -> bool { event.index % 2 == 0 }
//! # async fn receive() -> Option<(String, String)> { None }
//! # async fn delete(_receipt: String) {}
//! # async fn consume() -> Result<(), tidegate_client::Error> {
//! let tidegate = Client::new("http://127.0.0.1:8080", "tg_acme_...")?;
//! while let Some((body, receipt)) = receive().await {          // your SQS queue
//!     let event: Event = body.parse()?;
//!     let done = work(&event).await;                           // event.event_id is the idempotency key
//!     if let Some(token) = &event.token {
//!         let outcome = if done { Outcome::Succeeded } else { Outcome::Failed };
//!         tidegate.release_with_outcome(&[(token, outcome)]).await?;   // frees the slot for the next event
//!     }
//!     delete(receipt).await;                                   // then the message
//! }
//! # Ok(())
//! # }
//! ```
//!
//! A call of [`Client`] is not repeated by itself. Each may be repeated safely, except a job that is created without an id
//! of its own.

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod across;
mod backfill;
mod bulk;
mod calendar;
mod change;
mod client;
mod consumer;
mod dead_letters;
mod deployment;
mod error;
mod heartbeat;
mod history;
mod job;
mod keys;
mod message;
mod policy;
mod preview;
mod secret;
mod sideline;
mod tokens;
mod trigger;
#[cfg(feature = "webhook")]
mod webhook;

pub use across::{AheadQuery, EventsWanted, RunsWanted};
pub use backfill::Backfill;
pub use bulk::Selection;
pub use calendar::Calendar;
pub use change::ChangesWanted;
pub use client::{Client, Page};
#[cfg(feature = "sqs")]
pub use consumer::QueueConsumer;
pub use consumer::{
    BatchItemFailure, EventResult, LambdaConsumer, Lease, LeaseLost, SqsBatchResponse, SqsEvent, SqsRecord,
};
pub use dead_letters::DeadLetterFilter;
pub use error::Error;
pub use heartbeat::Heartbeat;
pub use job::{Job, Payload};
pub use keys::{ApiKey, ClientChange};
pub use message::{Message, MessageError};
pub use policy::Policy;
pub use preview::PreviewQuery;
pub use tidegate_protocol::{
    Ahead, At, BackfilledLaunch, Backoff, Backpressure, BatchWindow, BulkResult, CalendarView, CancelledRun,
    CancelledRuns, Change, ClientLateness, ClientUsage, ClientView, Completion, DeadLetter, DeadLetterCounts,
    DeadLetterDetail, DeadLetterResult, DeadLetterStatus, Dst, EarlyClose, EmissionHealth, Event,
    EventCounts, EventError, EventRecord, Every, ExpectationCode, Expected, Explanation, ExtendStatus,
    Extended, FailedDelivery, FieldError, Firing, ForecastCode, FreeStatus, Freed, Gap, Health, History,
    Holder, HourLateness, HttpTarget, IndexView, Interval, JobAhead, JobDefaults, JobVersion, JobView,
    KeyView, LatenessSpread, LaunchBackfill, LaunchChange, LaunchOverdue, LimitedBy, Misfire, MisfireRule,
    NewKey, OnClosedDay, OnDeadline, OnExpiry, Outcome, OverdueLaunch, OverdueState, Overlap, Pace, Per,
    Percentiles, PolicyAhead, PolicySample, PolicySamples, PolicyStatus, PolicyView, Preview, Problem,
    QuotaName, QuotaUsage, Quotas, Rate, ReasonCode, RegisteredClient, Release, ReleaseRule, ReleaseStatus,
    Released, Retry, Run, RunCounts, RunDetail, RunOverlap, Scope, SecretView, SelectedJobs, Sideline,
    SidelineStatus, Sidelines, SkippedLaunch, SplitView, SqsTarget, StepAhead, StrainAhead, StrainedTarget,
    Target, TriggerView, TriggeredRun, Unreadable, Upcoming, UpcomingFiring, UsageDay, WebhookSecret,
    Weekday,
};
pub use trigger::{Cron, CronFields, Trigger};
#[cfg(feature = "webhook")]
pub use webhook::{SecretError, WebhookError, WebhookVerifier};
