//! What a load takes of AWS: units, requests, time and money; how late events come; which limit is met first.
//!
//! | module | what it knows |
//! | --- | --- |
//! | [`limits`] | AWS in numbers, each with its source |
//! | [`prices`] | list prices |
//! | [`account`] | what an account may take, and what it pays |
//! | [`facts`] | what matters of jobs and policies |
//! | [`tables`] | what each table is asked for in a second |
//! | [`steps`] | what each step of the engine takes, measured |
//! | [`load`] | firings, counted: steps, waits, peaks |
//! | [`counted`] | what was counted |
//! | [`report`] | what follows: bill, lateness, backlogs, limits |
//!
//! Pure arithmetic. It says nothing of outages, retries, failed deliveries and slow consumers beyond their mean, and does not
//! decide when a job fires: whoever counts is told. Tests hold it against the engine (`tests/simulation`) and against the
//! model of AWS (`tests/cloud`): decision 0030.

pub mod account;
mod backlog;
mod cost;
pub mod counted;
mod dispatch;
mod due;
mod emission;
pub mod facts;
mod job_steps;
pub mod limits;
mod line;
pub mod load;
mod minute;
mod peak;
pub mod prices;
mod quotas;
pub mod report;
mod spread;
pub mod steps;
pub mod tables;
mod totals;

pub use backlog::Waiting;
pub use cost::Cost;
pub use peak::Peak;
pub use quotas::Use;
pub use spread::Spread;
