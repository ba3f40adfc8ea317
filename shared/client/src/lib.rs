//! What a consumer of Tidegate uses: the delivered [`Event`], [`Client::release`], a [`Heartbeat`] for long work, and
//! typed calls for the rest of the API.
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
//! Deliberately absent: a consumer loop, retries and a queue. The first two are decisions of the consumer, the third is
//! any SQS client. Every call here may be repeated safely, except a job that is created without an id of its own.

mod bulk;
mod calendar;
mod client;
mod error;
mod flow;
mod heartbeat;
mod history;
mod job;
mod policy;
mod preview;
mod target;
mod tokens;
mod trigger;

pub use bulk::BulkResult;
pub use calendar::{Calendar, CalendarStatus, Interval};
pub use client::{Client, Page, RegisteredClient};
pub use error::{Error, FieldError, Problem};
pub use flow::{BatchWindow, OnDeadline, Pace, RunOverlap};
pub use heartbeat::Heartbeat;
pub use job::{History, Job, JobStatus, Misfire, Payload};
pub use policy::Policy;
pub use preview::{Firing, Preview, PreviewQuery, Upcoming, UpcomingFiring};
pub use target::{ReleaseRule, Target};
pub use tidegate_protocol::{
    Completion, Event, EventError, EventRecord, ExpectationCode, Explanation, ExtendStatus, Extended,
    ForecastCode, FreeStatus, Freed, Holder, OnExpiry, Outcome, Per, PolicyStatus, PolicyView, Rate,
    ReasonCode, Release, ReleaseStatus, Released, Run, RunDetail, Unreadable,
};
pub use trigger::{At, Cron, CronFields, Dst, Every, Gap, Overlap, Trigger};
