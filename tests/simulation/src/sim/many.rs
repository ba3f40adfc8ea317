//! Many histories at once, over all cores, and a table of those that failed.

use std::any::Any;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::{Failure, FaultCoverage, Options, Played, Summary, Violation, run_with};

/// Seeds of one kind of failure that the table names.
const NAMED_SEEDS: usize = 12;

thread_local! {
    /// The panics of the history that this thread plays, those that the engine contains included.
    static PANICS: RefCell<Vec<Panic>> = const { RefCell::new(Vec::new()) };
}

struct Panic {
    place: String,
    message: String,
}

/// What came of many histories.
#[derive(Debug)]
pub struct Report {
    /// The seeds that were played.
    pub seeds: Range<u64>,
    /// How long that took.
    pub took: Duration,
    /// How many requests reached the services, in the histories that held.
    pub requests: u64,
    /// Events that consumers received, in the histories that held.
    pub delivered: usize,
    /// What went wrong, and how often, in the histories that held.
    pub coverage: FaultCoverage,
    /// The histories that failed, by seed.
    pub failures: Vec<Failure>,
}

impl Report {
    fn add(&mut self, outcome: Result<Summary, Box<Failure>>) {
        match outcome {
            Ok(summary) => {
                self.requests += summary.requests;
                self.delivered += summary.delivered;
                for (fault, count) in summary.coverage {
                    *self.coverage.entry(fault).or_default() += count;
                }
            }
            Err(failure) => self.failures.push(*failure),
        }
    }
}

impl fmt::Display for Report {
    /// The failures by invariant and kind, the most frequent first.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut kinds: BTreeMap<(&str, &str), Vec<String>> = BTreeMap::new();
        for Failure { violation, seed, .. } in &self.failures {
            kinds.entry((violation.invariant, &violation.kind)).or_default().push(seed.to_string());
        }
        let mut kinds: Vec<_> = kinds.into_iter().collect();
        kinds.sort_by_key(|(_, seeds)| std::cmp::Reverse(seeds.len()));
        if !kinds.is_empty() {
            writeln!(f, "{:>6}  {:8}  {:60}  seeds", "failed", "what", "kind")?;
        }
        for ((invariant, kind), seeds) in kinds {
            let named = seeds.iter().take(NAMED_SEEDS).map(String::as_str).collect::<Vec<_>>().join(" ");
            let more = match seeds.len().saturating_sub(NAMED_SEEDS) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            writeln!(f, "{:>6}  {invariant:8}  {kind:60}  {named}{more}", seeds.len())?;
        }
        let (played, seconds) = (self.seeds.end - self.seeds.start, self.took.as_secs_f64());
        write!(
            f,
            "{} of {played} seeds from {} on failed; {seconds:.1} s, {:.1} seeds a second, {} requests, {} events",
            self.failures.len(),
            self.seeds.start,
            played as f64 / seconds,
            self.requests,
            self.delivered
        )
    }
}

/// Plays the histories of seeds over all cores, each on one thread, and tells `on_failure` of each that fails. A panic, or
/// an error of the machinery, fails its seed only.
pub fn run_all(seeds: Range<u64>, options: Options, on_failure: impl Fn(&Failure) + Sync) -> Report {
    let began = Instant::now();
    let report = Mutex::new(Report {
        seeds: seeds.clone(),
        took: Duration::ZERO,
        requests: 0,
        delivered: 0,
        coverage: FaultCoverage::new(),
        failures: Vec::new(),
    });
    over_all_cores(seeds, |seed| {
        let outcome = play(seed, options);
        if let Err(failure) = &outcome {
            on_failure(failure);
        }
        report.lock().unwrap_or_else(PoisonError::into_inner).add(outcome);
    });
    let mut report = report.into_inner().unwrap_or_else(PoisonError::into_inner);
    report.failures.sort_by_key(|failure| failure.seed);
    report.took = began.elapsed();
    report
}

/// Does work that plays histories over all cores, each piece on one thread.
pub(crate) fn over_all_cores<T: Send>(pieces: impl Iterator<Item = T> + Send, work: impl Fn(T) + Sync) {
    let pieces = Mutex::new(pieces);
    let next = || pieces.lock().unwrap_or_else(PoisonError::into_inner).next();
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        let message = text(panic.payload());
        PANICS.with_borrow_mut(|panics| panics.push(Panic { place, message }));
    }));
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(piece) = next() {
                    work(piece);
                }
            });
        }
    });
    std::panic::set_hook(hook);
}

/// Plays the history of a seed. Its panics are known when the hook of [`over_all_cores`] is set.
pub(crate) fn play(seed: u64, options: Options) -> Result<Summary, Box<Failure>> {
    contained(seed, options, || run_with(seed, options))
}

/// Plays one history. The engine contains panics, so that one message or row fails and no other: here it must not meet any.
fn contained(
    seed: u64,
    options: Options,
    play: impl FnOnce() -> anyhow::Result<Played>,
) -> Result<Summary, Box<Failure>> {
    let played = catch_unwind(AssertUnwindSafe(play));
    let panics = PANICS.take();
    let failure =
        |violation| Box::new(Failure { seed, step: 0, violation, last: Vec::new(), mutant: options.mutant });
    if let Some(Panic { place, message }) = panics.into_iter().next() {
        return Err(failure(Violation::new("panic", place, message)));
    }
    match played {
        Ok(Ok(played)) => played.held(),
        Ok(Err(error)) => Err(failure(Violation::new("error", error.to_string(), format!("{error:#}")))),
        Err(payload) => Err(failure(Violation::new("panic", "without a place", text(&*payload)))),
    }
}

fn text(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(seed: u64, violation: Violation) -> Failure {
        Failure { seed, step: 1, violation, last: Vec::new(), mutant: None }
    }

    #[test]
    fn a_panic_fails_its_seed_only() {
        let panicked = contained(7, Options::default(), || panic!("no such row")).unwrap_err();
        assert_eq!((panicked.seed, panicked.violation.invariant), (7, "panic"));
        assert_eq!(panicked.violation.message, "no such row");
        let failed = contained(8, Options::default(), || anyhow::bail!("no queue")).unwrap_err();
        assert_eq!((failed.violation.invariant, &*failed.violation.kind), ("error", "no queue"));
    }

    #[test]
    fn failures_are_counted_by_invariant_and_kind() {
        let lost = |seed| failure(seed, Violation::new("I2", "an event never came", format!("event {seed}")));
        let report = Report {
            seeds: 1..101,
            took: Duration::from_secs(10),
            requests: 5,
            delivered: 4,
            coverage: FaultCoverage::new(),
            failures: vec![lost(3), failure(5, Violation::new("I5", "tokens are lost", "")), lost(9)],
        };
        let lines: Vec<String> = report.to_string().lines().map(str::to_owned).collect();
        assert!(lines[1].starts_with("     2  I2 ") && lines[1].ends_with(" 3 9"), "{lines:?}");
        assert!(lines[2].starts_with("     1  I5 ") && lines[2].ends_with(" 5"), "{lines:?}");
        assert!(
            lines[3].starts_with("3 of 100 seeds from 1 on failed; 10.0 s, 10.0 seeds a second"),
            "{lines:?}"
        );
    }
}
