//! What travels between Tidegate and those who use it, each type once: the engine writes it, the API answers with it, the
//! client library reads it.
//!
//! | who sends it | types |
//! | --- | --- |
//! | a target receives | [`Event`], [`Completion`], [`LaunchOverdue`] |
//! | the bus of a deployment receives | [`BusRecord`] |
//! | a consumer sends, by a call or a message | [`Release`], [`ReleaseMessage`] |
//! | the API answers | [`JobView`], [`CalendarView`], [`SecretView`], [`PolicyView`], [`PolicyStatus`], [`Holder`], [`ClientView`], [`RegisteredClient`] |
//! | the API answers | [`Change`], [`JobVersion`], [`Run`], [`RunDetail`], [`EventRecord`], [`Explanation`], [`Preview`], [`Upcoming`], what came of tokens and of bulk calls; lists of these |
//! | the API refuses with | [`Problem`] |
//! | both: parts of answers that clients send too | [`Target`], [`BatchWindow`], [`Misfire`], [`Rate`], [`Interval`], [`EarlyClose`], [`At`], [`Every`], [`Dst`], and the words in them |
//!
//! Fields are only ever added: whoever reads an answer or a message of ours ignores what it does not know, and a word of a
//! later version is read as `Other`. What clients send us is read strictly: a member or word that is not known is a typo. The
//! API judges bodies by their schemas, so that the parts that bodies and answers share can be read leniently here.
//!
//! Deliberately absent: checks, rules and clocks. Instants are texts as RFC 3339 has them.

mod ahead;
mod bus;
mod calendar;
mod change;
mod client;
mod completion;
mod dead_letter;
mod deployment;
mod event;
mod explanation;
mod flow;
mod job;
mod lateness;
mod overdue;
mod policy;
mod preview;
mod problem;
mod release;
mod retry;
mod run;
mod samples;
mod secret;
mod sideline;
mod target;
mod tokens;
mod trigger;
mod words;

pub use ahead::{Ahead, JobAhead, LimitedBy, PolicyAhead, StepAhead, StrainAhead};
pub use bus::{BusKind, BusRecord, BusState};
pub use calendar::{CalendarChange, CalendarList, CalendarView, EarlyClose, Interval, LaunchChange, Weekday};
pub use change::{Change, ChangeList, JobVersion, JobVersionList};
pub use client::{
    ClientDeletion, ClientList, ClientUsage, ClientView, DeletionStage, JobDefaults, KeyList, KeyView,
    NewKey, QuotaName, QuotaUsage, Quotas, RegisteredClient, Scope, Suspension, UsageDay, WebhookSecret,
};
pub use completion::Completion;
pub use dead_letter::{
    DeadLetter, DeadLetterCounts, DeadLetterDetail, DeadLetterList, DeadLetterResult, DeadLetterResults,
    DeadLetterStatus,
};
pub use deployment::{EmissionHealth, Health, IndexView, SplitView};
pub use event::{Event, EventError};
pub use explanation::{ExpectationCode, Explanation, ReasonCode};
pub use flow::{BatchWindow, OnDeadline, Pace, RunOverlap};
pub use job::{
    BulkResult, BulkResults, History, JobList, JobView, Misfire, MisfireRule, OnClosedDay, SelectedJobs,
};
pub use lateness::{ClientLateness, HourLateness, LatenessSpread};
pub use overdue::{Expected, LaunchOverdue, OverdueLaunch, OverdueList, OverdueState};
pub use policy::{
    Backpressure, Holder, HolderList, OnExpiry, Per, PolicyList, PolicyStatus, PolicyView, Rate,
    StrainedTarget, StrainedTargetList, Unreadable,
};
pub use preview::{Firing, Preview, Upcoming, UpcomingFiring};
pub use problem::{FieldError, Problem};
pub use release::{Outcome, Release, ReleaseEntry, ReleaseMessage};
pub use retry::{Backoff, Retry};
pub use run::{
    BackfilledLaunch, CancelledRun, CancelledRuns, EventCounts, EventList, EventRecord, FailedDelivery,
    FailedDeliveryList, ForecastCode, LaunchBackfill, Run, RunCounts, RunDetail, RunList, SkippedLaunch,
    TriggeredRun,
};
pub use samples::{Percentiles, PolicySample, PolicySamples};
pub use secret::{SecretList, SecretView};
pub use sideline::{Sideline, SidelineStatus, Sidelines};
pub use target::{
    EventBridgeTarget, HttpBody, HttpMethod, HttpTarget, LambdaTarget, ReleaseRule, SnsTarget, SqsTarget,
    StepFunctionsTarget, Target,
};
pub use tokens::{
    ExtendResults, ExtendStatus, Extended, FreeResults, FreeStatus, Freed, ReleaseResults, ReleaseStatus,
    Released,
};
pub use trigger::{At, Dst, Every, Gap, Overlap, TriggerView};
