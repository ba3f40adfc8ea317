//! The works: what is played, and which figures of it the table shows. `tests/bench/peers/works.mjs` plays them.

use serde_json::{Value, json};

use crate::peers::options::Options;

/// A work and the rows that it has in the table.
pub struct Work {
    pub name: &'static str,
    pub title: String,
    /// What the player is told.
    pub play: Value,
    pub figures: Vec<Figure>,
}

/// A figure of a work.
#[derive(Debug, Clone, Copy)]
pub struct Figure {
    /// The player's name for it.
    pub key: &'static str,
    pub title: &'static str,
    pub unit: Unit,
    pub aim: Option<f64>,
}

/// What a figure counts, which also says whether more of it is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    Seconds,
    PerSecond,
    Share,
    Megabytes,
    Microseconds,
}

impl Unit {
    /// Whether the larger figure is the better one.
    pub fn more_is_better(self) -> bool {
        matches!(self, Self::PerSecond | Self::Share)
    }
}

const fn figure(key: &'static str, title: &'static str, unit: Unit) -> Figure {
    Figure { key, title, unit, aim: None }
}

const P50: Figure = figure("p50_late_s", "p50 late", Unit::Seconds);
const P99: Figure = figure("p99_late_s", "p99 late", Unit::Seconds);
const MAX: Figure = figure("max_late_s", "most late", Unit::Seconds);
const DRAINED: Figure = figure("per_second", "drained a second", Unit::PerSecond);
const CREATED: Figure = figure("per_second", "created a second", Unit::PerSecond);
/// From the first arrival on: under a limit, what counts is how fast places go round.
const FROM_FIRST: Figure = figure("from_first_per_second", "drained a second", Unit::PerSecond);
const SHARE: Figure = figure("share_of_ideal", "of the ideal", Unit::Share);
const MEMORY: Figure = figure("memory_mb", "memory of the server", Unit::Megabytes);
const PROCESSOR: Figure = figure("processor_us_per_job", "its processor time for a job", Unit::Microseconds);

/// How long is waited for what does not come, after all should have come.
const PATIENCE_S: u64 = 300;
const QUICK_PATIENCE_S: u64 = 20;
const FIVE_MINUTES_S: u64 = 300;

/// How much is played.
struct Sizes {
    herd: u64,
    crowd: u64,
    bulk: u64,
    single: u64,
    batch: u64,
    singles: u64,
    tokens: u64,
    rate: u64,
    /// How far ahead, in seconds: of a herd, and of a crowd.
    ahead: u64,
    crowd_ahead: u64,
    /// How long the steady load goes on, and how far ahead its jobs are created.
    steady: u64,
    steady_ahead: [u64; 2],
    patience: u64,
}

impl Sizes {
    fn of(options: &Options) -> Self {
        if options.quick {
            return Self {
                herd: 500,
                crowd: 500,
                bulk: 1_000,
                single: 100,
                batch: 500,
                singles: 200,
                tokens: 100,
                rate: 100,
                ahead: 3,
                crowd_ahead: 3,
                steady: 2,
                steady_ahead: [1, 3],
                patience: QUICK_PATIENCE_S,
            };
        }
        Self {
            herd: 20_000,
            crowd: 100_000,
            bulk: 40_000,
            single: 4_000,
            batch: 10_000,
            singles: 3_000,
            tokens: 1_500,
            rate: 1_000,
            ahead: 25,
            crowd_ahead: if options.far { FIVE_MINUTES_S } else { 60 },
            steady: if options.far { 120 } else { 30 },
            steady_ahead: [5, 30],
            patience: PATIENCE_S,
        }
    }
}

/// All works of a run, in the order of the table.
pub fn all(options: &Options) -> Vec<Work> {
    let sizes = Sizes::of(options);
    let mut works = Vec::new();
    let aims = vec![aimed(P99, 1.0), aimed(DRAINED, 20_000.0)];
    works.push(herd("herd", sizes.herd, sizes.ahead, &sizes, aims.clone()));
    if options.far {
        works.push(herd("herd_far", sizes.herd, FIVE_MINUTES_S, &sizes, aims));
    }
    // In the short form it would be the herd once more.
    if !options.quick {
        let aims = vec![aimed(MAX, 5.0), aimed(DRAINED, 20_000.0)];
        works.push(herd("crowd", sizes.crowd, sizes.crowd_ahead, &sizes, aims));
    }
    works.push(creates("bulk_near", "in bulk", sizes.bulk, 25, 4, 30_000.0));
    works.push(creates("bulk_far", "in bulk", sizes.bulk, 3600, 4, 30_000.0));
    works.push(creates("single_near", "one by one", sizes.single, 25, 8, 5_000.0));
    works.push(creates("single_far", "one by one", sizes.single, 3600, 8, 5_000.0));
    works.push(limited(&sizes));
    let mut singles = herd("singles", sizes.singles, sizes.ahead, &sizes, vec![aimed(FROM_FIRST, 10_000.0)]);
    singles.play["limit"] = json!(50);
    singles.title += ", limit 50";
    works.push(singles);
    works.push(tokens(&sizes));
    works.push(steady(&sizes));
    works
}

fn aimed(figure: Figure, aim: f64) -> Figure {
    Figure { aim: Some(aim), ..figure }
}

fn herd(name: &'static str, count: u64, ahead: u64, sizes: &Sizes, figures: Vec<Figure>) -> Work {
    let title =
        format!("{} one-time jobs of one instant, created in bulk {} ahead", thousands(count), span(ahead));
    let play = json!({
        "kind": "herd", "count": count, "ahead_s": ahead, "callers": 4, "take": 10, "patience_s": sizes.patience,
    });
    Work { name, title, play, figures }
}

fn creates(name: &'static str, how: &str, count: u64, ahead: u64, callers: u64, aim: f64) -> Work {
    let title = format!("{} jobs created {how}, {} ahead, {callers} callers", thousands(count), span(ahead));
    let play = json!({
        "kind": "creates", "count": count, "ahead_s": ahead, "callers": callers, "one_by_one": how == "one by one",
    });
    Work { name, title, play, figures: vec![aimed(CREATED, aim)] }
}

fn limited(sizes: &Sizes) -> Work {
    let title = format!("{} events of one batch, limit 50", thousands(sizes.batch));
    let play =
        json!({"kind": "batch", "count": sizes.batch, "limit": 50, "take": 10, "patience_s": sizes.patience});
    Work { name: "batch", title, play, figures: vec![aimed(FROM_FIRST, 10_000.0)] }
}

fn tokens(sizes: &Sizes) -> Work {
    let title = format!("{} events of 20 ms, limit 10", thousands(sizes.tokens));
    let play = json!({
        "kind": "batch", "count": sizes.tokens, "limit": 10, "take": 1, "work_ms": 20, "patience_s": sizes.patience,
    });
    Work { name: "tokens", title, play, figures: vec![aimed(SHARE, 0.97)] }
}

fn steady(sizes: &Sizes) -> Work {
    let [nearest, farthest] = sizes.steady_ahead;
    let title = format!(
        "{} jobs a second for {}, created {nearest} to {farthest} s ahead",
        thousands(sizes.rate),
        span(sizes.steady)
    );
    let play = json!({
        "kind": "steady", "per_second": sizes.rate, "for_s": sizes.steady, "ahead_s": sizes.steady_ahead, "take": 10,
        "patience_s": sizes.patience,
    });
    Work {
        name: "steady",
        title,
        play,
        figures: vec![aimed(P50, 0.005), aimed(P99, 0.05), aimed(MEMORY, 150.0), PROCESSOR],
    }
}

/// A span in the largest unit that leaves no rest.
fn span(seconds: u64) -> String {
    match seconds {
        3600 => "1 hour".to_owned(),
        _ if seconds > 60 && seconds.is_multiple_of(60) => format!("{} minutes", seconds / 60),
        _ => format!("{seconds} s"),
    }
}

/// A number with a comma between thousands.
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peers::names;

    #[test]
    fn every_work_is_named_once_and_in_order() {
        let options = Options::read(&["--far".to_owned()]).unwrap();
        let names: Vec<_> = all(&options).iter().map(|work| work.name).collect();
        assert_eq!(names, names::WORKS);
    }

    #[test]
    fn numbers_and_spans_read_as_people_write_them() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(thousands), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!([25, 60, 300, 3600].map(span), ["25 s", "60 s", "5 minutes", "1 hour"]);
    }
}
