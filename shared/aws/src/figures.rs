//! What CloudWatch makes metrics of: one line of JSON in the log for an invocation that has something to tell, in the embedded
//! metric format.
//!
//! The engine tells figures as fields of `tracing` events (see [`tidegate_engine::figures`]), `calls` counts what became of the
//! requests of the SDK. A sum that is zero is not written, and there is one dimension, the stack: each metric is paid for.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use metrics::{Unit, counter, describe_counter, describe_histogram, histogram};
use metrics_cloudwatch_embedded::{Builder, Collector};
use tidegate_engine::figures::{
    BUS_DROPPED, DEAD_EVENTS, LATENESS, LINE_AGE, OLDEST_PART, OVERDUE, POISON, ROWS_SET_ASIDE, TARGET,
    WATERMARK_LAG,
};
use tidegate_engine::panics_contained;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Layer};

/// The namespace of the metrics, as `template.yaml` has it.
const NAMESPACE: &str = "Tidegate";
/// Their one dimension.
const DIMENSION: &str = "Stack";

/// Requests that a table, a partition or a queue was too small for.
pub(crate) const THROTTLES: &str = "Throttles";
/// Requests that met a transaction on the same rows. They are repeated, and say nothing of the services' health.
pub(crate) const CONFLICTS: &str = "Conflicts";
/// Requests that a service failed or did not answer, or that it refused for another reason than a condition.
pub(crate) const FAULTS: &str = "Faults";
/// Messages of ours that failed and come again.
const RETRIED_MESSAGES: &str = "RetriedMessages";
/// Panics that were contained.
const PANICS: &str = "Panics";

/// Sums by the field that tells them: metrics.
const SUMS: [(&str, &str); 5] = [
    (DEAD_EVENTS, "DeadEvents"),
    (ROWS_SET_ASIDE, "SetAside"),
    (POISON, "Poison"),
    (OVERDUE, "Overdue"),
    (BUS_DROPPED, "BusDropped"),
];
/// Seconds by the field that tells them: the most of an invocation is a metric.
const MOST: [(&str, &str); 4] = [
    (WATERMARK_LAG, "WatermarkLag"),
    (LATENESS, "Lateness"),
    (OLDEST_PART, "OldestPart"),
    (LINE_AGE, "LineAge"),
];
/// Says that a figure was not told.
const UNTOLD: u64 = u64::MAX;

/// The names of all metrics that functions write, in the namespace `Tidegate` and with the one dimension `Stack`.
pub fn metrics() -> impl Iterator<Item = &'static str> {
    let told = SUMS.iter().chain(&MOST).map(|(_, name)| *name);
    [THROTTLES, CONFLICTS, FAULTS, RETRIED_MESSAGES, PANICS].into_iter().chain(told)
}

/// The figures of this process, which are written at the end of an invocation. Cheap to clone.
#[derive(Clone)]
pub struct Figures {
    /// None where another recorder is in place, whose figures are not for CloudWatch.
    collector: Option<&'static Collector>,
    told: Arc<Told>,
}

/// What was told since the last writing, beside sums.
struct Told {
    most: [AtomicU64; MOST.len()],
    panics: AtomicU64,
    under_way: Arc<AtomicU64>,
}

/// Hears what the engine tells.
pub(crate) struct Listener(Arc<Told>);

static COLLECTOR: OnceLock<Option<&'static Collector>> = OnceLock::new();

impl Figures {
    /// The figures of a stack. A process has those of the stack that it named first.
    pub(crate) fn of(stack: &str) -> Self {
        let builder =
            Builder::new().cloudwatch_namespace(NAMESPACE).with_dimension(DIMENSION, stack.to_owned());
        let collector = *COLLECTOR.get_or_init(|| builder.init().ok());
        for name in [THROTTLES, CONFLICTS, FAULTS, RETRIED_MESSAGES, PANICS] {
            describe_counter!(name, Unit::Count, "");
        }
        for (_, name) in SUMS {
            describe_counter!(name, Unit::Count, "");
        }
        for (_, name) in MOST {
            describe_histogram!(name, Unit::Seconds, "");
        }
        let told = Told {
            most: std::array::from_fn(|_| AtomicU64::new(UNTOLD)),
            panics: AtomicU64::new(panics_contained()),
            under_way: Arc::default(),
        };
        Self { collector, told: Arc::new(told) }
    }

    /// A layer that hears what the engine tells.
    pub(crate) fn listener(&self) -> Listener {
        Listener(Arc::clone(&self.told))
    }

    /// How many requests are under way, for who makes clients: what is when an invocation ends was cut off by a time-out.
    pub(crate) fn under_way(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.told.under_way)
    }

    /// Writes what was told since the last time, if anything was, to standard output.
    pub fn write(&self) {
        // Without its metrics an invocation is as good as with them.
        let _unwritten = self.write_to(io::stdout().lock());
    }

    fn write_to(&self, to: impl io::Write) -> io::Result<()> {
        for ((_, name), most) in MOST.iter().zip(&self.told.most) {
            match most.swap(UNTOLD, Ordering::Relaxed) {
                UNTOLD => {}
                most => histogram!(*name).record(most as f64),
            }
        }
        let panics = panics_contained();
        let before = self.told.panics.swap(panics, Ordering::Relaxed);
        counter!(PANICS).increment(panics.saturating_sub(before));
        counter!(FAULTS).increment(self.told.under_way.swap(0, Ordering::Relaxed));
        self.collector.map_or(Ok(()), |collector| collector.flush(to))
    }
}

/// Counts messages that failed and come again.
pub(crate) fn count_retried(messages: usize) {
    counter!(RETRIED_MESSAGES).increment(messages as u64);
}

/// Whether an event may have a figure: those that tell one and nothing else, and what is logged as a warning or an error.
pub(crate) fn may_tell(of: &Metadata<'_>) -> bool {
    of.target() == TARGET || (*of.level() <= Level::WARN && of.target().starts_with("tidegate"))
}

impl<S: Subscriber> Layer<S> for Listener {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        event.record(&mut Hearing(&self.0));
    }
}

struct Hearing<'t>(&'t Told);

impl Visit for Hearing<'_> {
    fn record_u64(&mut self, field: &Field, value: u64) {
        if let Some((_, name)) = SUMS.iter().find(|(told, _)| *told == field.name()) {
            counter!(*name).increment(value);
        }
        let known = MOST.iter().zip(&self.0.most).find(|((told, _), _)| *told == field.name());
        if let Some((_, most)) = known {
            let larger = |known| (known == UNTOLD || known < value).then_some(value);
            // A smaller figure is told by the larger one.
            let _unchanged = most.fetch_update(Ordering::Relaxed, Ordering::Relaxed, larger);
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn std::fmt::Debug) {}
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use tracing::{error, event, info, warn};
    use tracing_subscriber::filter;
    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;

    fn written(figures: &Figures) -> Vec<Value> {
        let mut text = Vec::new();
        figures.write_to(&mut text).unwrap();
        String::from_utf8(text).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[test]
    fn what_was_told_is_one_line_that_cloudwatch_reads_and_then_forgotten() {
        let figures = Figures::of("acme");
        let layer = figures.listener().with_filter(filter::filter_fn(may_tell));
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
            event!(target: TARGET, Level::DEBUG, { { LINE_AGE } = 7_u64 });
            event!(target: TARGET, Level::DEBUG, { { LINE_AGE } = 90_u64 });
            event!(target: TARGET, Level::DEBUG, { { LINE_AGE } = 8_u64 });
            event!(target: TARGET, Level::DEBUG, { { WATERMARK_LAG } = 0_u64 });
            // What a module of ours says, whatever this one is called.
            warn!(target: "tidegate_engine::deliver", client = "acme", { DEAD_EVENTS } = 3_u64, "given up");
            error!(target: "tidegate_engine::handle", received = 9, { POISON } = 1_u64, "poison");
            // Neither of these tells anything.
            info!(target: "tidegate_engine::emit", parts = 2, { LATENESS } = 1_u64, "no figure");
            warn!(target: "hyper", status = 503, { DEAD_EVENTS } = 5_u64, "not of ours");
        });
        count_retried(2);
        counter!(CONFLICTS).increment(4);
        let lines = written(&figures);
        let [line] = lines.as_slice() else { panic!("{} lines: {lines:?}", lines.len()) };
        let of = |name: &str| &line[name];
        assert_eq!(of("LineAge"), &json!([90.0]));
        assert_eq!(of("WatermarkLag"), &json!([0.0]));
        assert_eq!((of("DeadEvents"), of("Poison")), (&json!(3), &json!(1)));
        assert_eq!((of("RetriedMessages"), of("Conflicts")), (&json!(2), &json!(4)));
        assert_eq!(of("Stack"), "acme");
        for untold in ["Lateness", "OldestPart", "SetAside", "Throttles", "Faults", "Panics"] {
            assert_eq!(of(untold), &Value::Null, "{untold}");
        }
        let about = &line["_aws"]["CloudWatchMetrics"][0];
        assert_eq!((&about["Namespace"], &about["Dimensions"]), (&json!("Tidegate"), &json!([["Stack"]])));
        let metrics = about["Metrics"].as_array().unwrap();
        assert!(metrics.contains(&json!({"Name": "LineAge", "Unit": "Seconds"})), "{metrics:?}");
        assert!(metrics.contains(&json!({"Name": "DeadEvents", "Unit": "Count"})), "{metrics:?}");
        assert_eq!(written(&figures), Vec::<Value>::new());
        // A request that is under way when its invocation ends got no answer.
        figures.under_way().fetch_add(1, Ordering::Relaxed);
        assert_eq!(written(&figures)[0]["Faults"], 1);
    }
}
