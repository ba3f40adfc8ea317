//! Time, without a clock: cron expressions, zones, launches, and the keys of the time index.
//!
//! | step | item |
//! | --- | --- |
//! | parse and check | [`Expression::parse`], [`CronSpec::from_fields`], [`parse_interval`], [`parse_zone`] |
//! | what a child row stores | [`CompiledCron::encode`], [`ChildKey`] |
//! | which children a job has | [`decompose`] |
//! | which keys a scan reads | [`LocalWindow::new`], [`LocalWindow::eligible`], [`Window::at_minutes`] |
//! | what a child launches | [`Cadence::owned_firings_in`] |
//! | what is moved off closed days | [`OnClosedDay`] |
//!
//! Deliberately absent: reading a clock, and anything that suspends. Launches lie on whole seconds.

mod at;
mod bounds;
mod cadence;
mod closed_days;
mod cron;
mod decompose;
mod dst;
mod eligible;
mod expression;
mod firing;
mod instants;
mod interval;
mod launch;
mod local;
mod rate;
mod sharded_key;
mod span;
mod transitions;
mod upcoming;
mod wall;
mod warnings;
mod window;
mod zone;
mod zone_rules;

pub use at::{AtMinute, at_key};
pub use bounds::{InstantError, clamped, shifted, within_bounds};
pub use cadence::Cadence;
pub(crate) use cadence::latest_of;
pub use closed_days::{IsOpen, OnClosedDay};
pub use cron::{CompiledCron, CronError, CronFields, CronSpec, DecodeError, Field, split_zone_prefix};
pub use decompose::{decompose, launches_per_cycle, reads_per_cycle};
pub use dst::{DstRules, Gap, Overlap};
pub use eligible::{Minutes, ShardRange, eligible};
pub use expression::Expression;
pub use firing::{Dst, Firing};
pub use instants::{Instants, InstantsError};
pub use interval::{RateError, RateSeconds, RateTextError, parse_interval};
pub use launch::{ChildKey, KeyError, LaunchClass, LaunchExpression};
pub use local::LocalWindow;
pub use rate::Rate;
pub use sharded_key::ShardedKey;
pub use span::{ceil_second, days, milliseconds, seconds, whole_second};
pub use upcoming::FiringCount;
pub use wall::{WallClock, WallOffset};
pub use window::{Window, WindowError};
pub use zone::{ZoneError, parse_zone};
pub use zone_rules::zone_database_version;
