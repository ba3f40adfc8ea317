//! What was counted: of minutes, of seconds, of policies, of all.

use crate::backlog::Waiting;
use crate::cost::Cost;
use crate::peak::Peak;
use crate::spread::Spread;
use crate::steps::Steps;
use crate::tables::TablePeaks;

/// What happens in a minute.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct MinuteLoad {
    /// Firings.
    pub firings: f64,
    /// Events that are due.
    pub events: f64,
    /// Events under policies that are delivered.
    pub released: f64,
    /// What it takes.
    pub cost: Cost,
    /// Of it, what the messages take that are handled in it.
    pub handled: Cost,
    /// What those take that are handled in the second in which most are.
    pub busiest: Cost,
    /// That second.
    pub busiest_s: i64,
}

/// The most of everything in one second.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SecondPeaks {
    /// Firings.
    pub firings: Peak,
    /// Events.
    pub events: Peak,
    /// Messages of the dispatch queue.
    pub messages: Peak,
    /// Records of events that nothing throttles.
    pub records: Peak,
    /// Events for one FIFO queue.
    pub fifo: Peak,
    /// What it takes.
    pub cost: CostPeaks,
    /// What tables are asked for.
    pub tables: TablePeaks,
    /// Read units of the mark of the client, which each chunk reads.
    pub mark_reads: Peak,
    /// Read units of the jobs of the client whose payloads do not travel with their events.
    pub row_reads: Peak,
    /// Write units of the packs of the client and a minute.
    pub pack_writes: Peak,
    /// Read units of the same.
    pub pack_reads: Peak,
    /// Jobs that are created.
    pub creates: Peak,
    /// Events that are released under all policies together.
    pub released: Peak,
    /// Batches of messages under way at once.
    pub batches: Peak,
}

/// The most of what is paid for in one second.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CostPeaks {
    /// Write units.
    pub write_units: Peak,
    /// Read units.
    pub read_units: Peak,
    /// Requests to SQS.
    pub sqs_requests: Peak,
    /// Invocations.
    pub lambda_requests: Peak,
}

impl CostPeaks {
    pub(crate) fn see(&mut self, cost: Cost, at_s: i64) {
        self.write_units.see(cost.write_units, at_s);
        self.read_units.see(cost.read_units, at_s);
        self.sqs_requests.see(cost.sqs_requests, at_s);
        self.lambda_requests.see(cost.lambda_requests, at_s);
    }
}

/// What became of a policy.
#[derive(Debug, Clone, Default)]
pub struct PolicyLoad {
    /// Steps that its events share.
    pub shared: Steps,
    /// Its events.
    pub events: f64,
    /// How late they are.
    pub waits: Spread,
    /// Events that begin in a second when some wait.
    pub per_second: f64,
    /// The most events that it delivers in a second.
    pub busiest_second: Peak,
    /// The longest stretch in which events waited.
    pub longest: Option<Waiting>,
    /// The last one.
    pub last: Option<Waiting>,
}

/// Everything that was counted.
#[derive(Debug, Clone)]
pub struct Counted {
    /// Firings of each job.
    pub fired: Vec<f64>,
    /// Steps that single events share that nothing throttles.
    pub unthrottled: Steps,
    /// Events that share them.
    pub unthrottled_events: f64,
    /// How late the events are that nothing throttles.
    pub unthrottled_waits: Spread,
    /// The policies.
    pub policies: Vec<PolicyLoad>,
    /// What nobody's firings are to blame for: ticks and polls.
    pub idle: Steps,
    /// The minutes of the window, and those after it.
    pub minutes: Vec<MinuteLoad>,
    /// The busiest seconds.
    pub seconds: SecondPeaks,
    /// The most rows of one minute.
    pub busiest_tick: Peak,
}

/// The place of a minute among those that are counted.
pub(crate) fn place_of(minute: i64, first: i64) -> usize {
    usize::try_from(minute - first).unwrap_or_default()
}
