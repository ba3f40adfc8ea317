//! A round: a fresh world, the inputs of one seed, and the neighbours looked at after each minute.

use std::fmt;
use std::io::{Seek as _, Write as _};
use std::path::{Path, PathBuf};

use anyhow::Result;
use tidegate_simulation::sim::Dice;

use crate::fault::Fault;
use crate::input::Input;
use crate::numbers::{INPUTS_PER_MINUTE, INPUTS_PER_ROUND};
use crate::schema::Document;
use crate::smallest;
use crate::stage::{Stage, Tally};
use crate::step::Step;

/// What a round did that held.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Summary {
    /// Inputs that were sent.
    pub inputs: u64,
    /// How requests were answered.
    pub tally: Tally,
    /// Minutes in which both neighbours' events came in time.
    pub minutes: u64,
    /// Known failures that were passed over.
    pub passed_over: u64,
}

impl Summary {
    /// Counts those of another round.
    pub fn add(&mut self, other: Self) {
        self.inputs += other.inputs;
        self.minutes += other.minutes;
        self.passed_over += other.passed_over;
        self.tally.accepted += other.tally.accepted;
        self.tally.refused += other.tally.refused;
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { inputs, minutes, passed_over, tally: Tally { accepted, refused } } = self;
        write!(f, "{inputs} inputs ({accepted} requests accepted, {refused} refused) in {minutes} minutes")?;
        if *passed_over == 0 { Ok(()) } else { write!(f, ", {passed_over} failures passed over") }
    }
}

/// A round that failed.
#[derive(Debug)]
pub struct Failure {
    /// Its seed.
    pub seed: u64,
    /// Inputs that had been sent.
    pub inputs: u64,
    /// What did not hold.
    pub fault: Fault,
    /// The smallest steps that were found to show the same in a fresh world.
    pub smallest: Vec<Step>,
    /// Whether they do. Else they are all the steps that led there.
    pub is_replayed: bool,
}

/// What came of a round.
#[derive(Debug)]
pub enum Played {
    /// No input did any harm.
    Held(Summary),
    /// One did.
    Failed(Box<Failure>),
}

/// Where the input that is being sent is written: it stays there when the process dies of it.
pub fn journal_of(seed: u64) -> PathBuf {
    std::env::temp_dir().join(format!("tidegate-fuzz-{seed}.input"))
}

/// Plays the round of a seed.
///
/// # Errors
/// When the machinery itself fails. What the inputs did wrong is [`Played::Failed`].
pub fn play(seed: u64) -> Result<Played> {
    play_past(seed, &|_| false)
}

/// Plays the round of a seed. After a fault that is passed over it goes on in a fresh world.
///
/// # Errors
/// When the machinery itself fails.
pub fn play_past(seed: u64, is_passed_over: &dyn Fn(&Fault) -> bool) -> Result<Played> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let journal = journal_of(seed);
    let played = runtime.block_on(play_with(seed, &journal, is_passed_over));
    std::fs::remove_file(&journal)?;
    played
}

async fn play_with(seed: u64, journal: &Path, is_passed_over: &dyn Fn(&Fault) -> bool) -> Result<Played> {
    let (dice, document) = (Dice::new(seed), Document::read()?);
    let mut journal = std::fs::File::create(journal)?;
    let mut stage = Stage::new().await?;
    let (mut summary, mut steps) = (Summary::default(), Vec::new());
    for number in 0..INPUTS_PER_ROUND {
        let input = Input::draw(number % INPUTS_PER_MINUTE, &dice, &document, &stage.known, stage.now_s())?;
        journal.set_len(0)?;
        journal.rewind()?;
        write!(journal, "input {number} of seed {seed}: {input}")?;
        summary.inputs += 1;
        let mut next = vec![Step::Input(input)];
        if (number + 1).is_multiple_of(INPUTS_PER_MINUTE) {
            next.push(Step::Minute);
        }
        for step in next {
            let outcome = step.take(&mut stage).await?;
            summary.tally = stage.tally;
            summary.minutes += u64::from(step == Step::Minute && outcome.is_none());
            steps.push(step);
            let Some(fault) = outcome else {
                if stage.is_shut_out() {
                    // Nearly all that such a client sends is refused alike.
                    stage = stage.afresh().await?;
                    steps.clear();
                }
                continue;
            };
            if is_passed_over(&fault) {
                // Nothing can be said of what such a world does next.
                summary.passed_over += 1;
                stage = stage.afresh().await?;
                steps.clear();
                continue;
            }
            let (smallest, is_replayed) = smallest::find(&steps, &fault).await?;
            let inputs = summary.inputs;
            return Ok(Played::Failed(Box::new(Failure { seed, inputs, fault, smallest, is_replayed })));
        }
    }
    Ok(Played::Held(summary))
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, inputs, fault, smallest, is_replayed } = self;
        writeln!(f, "seed {seed} failed after {inputs} inputs: {fault}")?;
        match is_replayed {
            true => writeln!(f, "the smallest inputs that show it in a fresh world:")?,
            false => writeln!(f, "no smaller inputs show it; the last of those that led there:")?,
        }
        let told = if *is_replayed { smallest.len() } else { 5 };
        for step in smallest.iter().skip(smallest.len().saturating_sub(told)) {
            match step {
                Step::Input(input) => writeln!(f, "---\n{input}")?,
                Step::Minute => writeln!(f, "---\na minute passes")?,
            }
        }
        write!(f, "---\nreplay it with: cargo xtask fuzz {INPUTS_PER_ROUND} --from {seed}")
    }
}
