//! Time, without a clock: cron expressions, zones, launches, and the keys of the time index.
//!
//! | step | item |
//! | --- | --- |
//! | parse and check | [`CronSpec::parse`], [`CronSpec::from_fields`], [`parse_zone`] |
//! | what a child row stores | [`CompiledCron::encode`], [`ChildKey`] |
//! | which children a job has | [`decompose`] |
//! | which keys a scan reads | [`LocalWindow::new`], [`LocalWindow::eligible`], [`Window::at_minutes`] |
//! | what a child launches | [`CompiledCron::owned_firings_in`] |
//!
//! Deliberately absent: reading a clock, and anything that suspends. Launches lie on whole minutes; the wall-clock
//! parts of a window keep their seconds, so that a seconds field can come without a new shape.

mod at;
mod cron;
mod decompose;
mod eligible;
mod firing;
mod launch;
mod local;
mod transitions;
mod window;
mod zone;

pub use at::{AtMinute, at_key};
pub use cron::{CompiledCron, CronError, CronFields, CronSpec, DecodeError, Field, split_zone_prefix};
pub use decompose::{MAX_CHILDREN, decompose, launches_per_cycle, reads_per_cycle};
pub use eligible::{Minutes, ShardRange, eligible};
pub use firing::{Dst, Firing};
pub use launch::{ChildKey, KeyError, LaunchClass, LaunchExpression};
pub use local::LocalWindow;
pub use window::{Window, WindowError};
pub use zone::{ZoneError, parse_zone, zone_database_version};
