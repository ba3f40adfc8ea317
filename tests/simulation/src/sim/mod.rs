//! Seeded histories: the production engine on embedded stores, a virtual clock, scripted consumers, and faults.
//!
//! One seed is one history, and gives the same one each time. [`run`] plays it, looks at the invariants after every step
//! and, when the faults have stopped, at what must have come of it. What happens how often stands in `mix`, the invariants in
//! `checkers`, when jobs must fire in `oracle`. Targets are queues, in a quarter of the histories endpoints beside them, and
//! places that take nothing; in some histories an operator redrives what is dead, in others jobs and clients
//! are sidelined and drained. Deliberately absent: sockets.

mod chaos;
mod checkers;
mod clocks;
mod consumer;
mod coverage;
mod dice;
mod drain;
mod endpoints;
mod history;
mod letters;
mod many;
mod mix;
mod model;
mod operator;
mod oracle;
mod pending_calls;
mod processes;
mod setup;
mod sidelines;
mod watch;

use std::fmt;

pub use checkers::Violation;
pub use coverage::{CoveredFault, FaultCoverage};
pub use dice::Dice;
use history::History;
pub use history::Summary;
pub use many::{Report, run_all};
pub(crate) use many::{over_all_cores, play};

use crate::mutants::Mutant;

/// Lines of a history that a failure tells.
const LAST: usize = 60;

/// A history that failed.
#[derive(Debug)]
pub struct Failure {
    /// Its seed.
    pub seed: u64,
    /// The step in which it failed.
    pub step: u64,
    /// What did not hold.
    pub violation: Violation,
    /// The last things that happened.
    pub last: Vec<String>,
    /// The clause that was taken off.
    pub mutant: Option<&'static Mutant>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &self.last {
            writeln!(f, "    {line}")?;
        }
        let Violation { invariant, kind, message } = &self.violation;
        writeln!(f, "seed {} failed in step {}: {invariant}, {kind}", self.seed, self.step)?;
        writeln!(f, "    {message}")?;
        write!(f, "replay it with: cargo xtask simulate 1 --from {}", self.seed)?;
        match self.mutant {
            None => Ok(()),
            Some(mutant) => write!(f, " --mutant '{}'", mutant.name),
        }
    }
}

/// How histories are played.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// How many lines of its history a failure tells, the last ones.
    pub lines: usize,
    /// The clause that is taken off, to prove that it is missed.
    pub mutant: Option<&'static Mutant>,
    /// Whether the clauses of conditional writes are counted.
    pub counts_clauses: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { lines: LAST, mutant: None, counts_clauses: false }
    }
}

/// What came of a history.
#[derive(Debug)]
pub enum Played {
    /// Every invariant held.
    Held(Summary),
    /// One did not.
    Failed(Box<Failure>),
}

impl Played {
    /// What was counted.
    ///
    /// # Errors
    /// How an invariant did not hold.
    pub fn held(self) -> Result<Summary, Box<Failure>> {
        match self {
            Self::Held(summary) => Ok(summary),
            Self::Failed(failure) => Err(failure),
        }
    }
}

/// Plays the history of a seed.
///
/// # Errors
/// When the machinery itself fails. What the engine does wrong is [`Played::Failed`].
pub fn run(seed: u64) -> anyhow::Result<Played> {
    run_with(seed, Options::default())
}

/// Plays the history of a seed, with these options.
///
/// # Errors
/// When the machinery itself fails.
pub fn run_with(seed: u64, options: Options) -> anyhow::Result<Played> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    runtime.block_on(play_one(seed, options))
}

async fn play_one(seed: u64, options: Options) -> anyhow::Result<Played> {
    let mut history = History::new(seed, options).await?;
    let outcome = match history.under_faults().await {
        Ok(()) => drain::finish(&mut history).await,
        violated => violated,
    };
    history.end(seed, options, outcome)
}
