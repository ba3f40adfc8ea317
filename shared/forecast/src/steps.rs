//! What each step of the engine takes: one table, measured.
//!
//! Units and requests are measured on the embedded stores, invocations and time on the model of AWS. Two tests hold the
//! table: `tests/simulation/tests/forecast` compares what days of every kind consume with what is forecast from it, and
//! `tests/cloud/tests/forecast.rs` the time of functions. A step that grows dearer or cheaper fails one of them.

use serde::Serialize;

use tidegate_domain::limits::{AT_ROW_DAYS, HISTORY_DAYS};

use crate::cost::Cost;

/// What is logged of a call of the API: a line as JSON, with what CloudWatch counts beside it. *Assumed*. Batches that are
/// handled without trouble log nothing.
const CALL_LOG_BYTES: f64 = 400.0;
/// What is logged of a tick.
const TICK_LOG_BYTES: f64 = 500.0;
/// The row of an instant, with the 100 bytes that DynamoDB counts beside it, and for how long it is kept.
const INSTANT_BYTES: f64 = 550.0;
const INSTANT_DAYS: f64 = AT_ROW_DAYS as f64;
/// The record of a single event, and the row of a run.
const RECORD_BYTES: f64 = 350.0;
const RUN_BYTES: f64 = 700.0;
/// For how long what became of events is kept.
const HISTORY: f64 = HISTORY_DAYS as f64;

/// A step that is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// A one-time job is created under a generated id.
    OneTimeJob,
    /// A one-time job is created under an id of its client's choice.
    NamedOneTimeJob,
    /// A call of the API that creates jobs.
    CreateCall,
    /// A job with several instants is created: a row of its own, what is recorded of that, and its places in lists.
    ListedJob,
    /// The row of one of the instants of such a job.
    ListedInstant,
    /// A write unit that a row takes beyond the first, since its payload is large.
    RowUnit,
    /// A read unit of a row whose payload does not travel with its events.
    RowRead,
    /// A single event is planned.
    SingleEvent,
    /// What became of a single event that nothing throttles is kept.
    SingleRecord,
    /// A chunk of single events that nothing throttles is delivered.
    SingleChunk,
    /// A chunk is marked as sent: one whose only event was recorded is not.
    ChunkMark,
    /// A run of several events that nothing throttles begins.
    BatchRun,
    /// A run of so many events that a worker sends them.
    RunPart,
    /// A chunk of a run's events is delivered.
    BatchChunk,
    /// A part of a minute that a tick leaves to a worker.
    ScanPart,
    /// A call that sends up to ten messages to the dispatch queue.
    DispatchSend,
    /// 64 KB that messages are larger than the call that sends them and the one that receives them are billed for anyhow.
    Payload,
    /// A batch of up to ten messages is received, handled and deleted.
    HandlerCall,
    /// A call that sends up to ten events to a queue.
    Send,
    /// A call that delivers an event to an HTTP target, which is taken to answer within 200 ms, beside 19 others.
    HttpCall,
    /// A batch of messages waits for HTTP targets that answer within 200 ms.
    HttpWait,
    /// A run of several events joins the line of its policy, and leaves it.
    ThrottledRun,
    /// A pack of single events joins the line, and leaves it.
    Pack,
    /// An event of a pack.
    PackedEvent,
    /// An event of a pack whose policy has several slot groups: they read its packs at the same time.
    SharedEvent,
    /// Single events that arrived in messages find too few tokens and join the line.
    Overflow,
    /// A wake-up for an instant at which something in a line is due.
    Wake,
    /// A slot group takes a range when it has come to the end of the one before.
    Range,
    /// A slot group takes a range while nothing waits before it, and comes to its end.
    FreshRange,
    /// An event of a range finds a token at once.
    FreshEvent,
    /// A message with single events that have little company arrives.
    Arrival,
    /// An event of such a message.
    ArrivedEvent,
    /// A call of the API that releases tokens.
    ReleaseCall,
    /// A slot group is written: leases end, others begin.
    SlotWrite,
    /// What became of some throttled events is compacted into their history.
    Compaction,
    /// A policy joins the list of active ones, and leaves it.
    Activation,
    /// A minute of an active policy.
    ActiveMinute,
    /// A slot group of a policy that is active for a minute.
    ActiveGroupMinute,
    /// A tick.
    Tick,
    /// A zone that a tick looks at.
    TickZone,
    /// A minute in which the event sources poll.
    PolledMinute,
}

impl Step {
    /// All of them.
    pub const ALL: [Self; 41] = [
        Self::OneTimeJob,
        Self::NamedOneTimeJob,
        Self::CreateCall,
        Self::ListedJob,
        Self::ListedInstant,
        Self::RowUnit,
        Self::RowRead,
        Self::SingleEvent,
        Self::SingleRecord,
        Self::SingleChunk,
        Self::ChunkMark,
        Self::BatchRun,
        Self::RunPart,
        Self::BatchChunk,
        Self::ScanPart,
        Self::DispatchSend,
        Self::Payload,
        Self::HandlerCall,
        Self::Send,
        Self::HttpCall,
        Self::HttpWait,
        Self::ThrottledRun,
        Self::Pack,
        Self::PackedEvent,
        Self::SharedEvent,
        Self::Overflow,
        Self::Wake,
        Self::Range,
        Self::FreshRange,
        Self::FreshEvent,
        Self::Arrival,
        Self::ArrivedEvent,
        Self::ReleaseCall,
        Self::SlotWrite,
        Self::Compaction,
        Self::Activation,
        Self::ActiveMinute,
        Self::ActiveGroupMinute,
        Self::Tick,
        Self::TickZone,
        Self::PolledMinute,
    ];

    /// What one takes.
    pub const fn cost(self) -> Cost {
        match self {
            Self::OneTimeJob => Cost::tables(1.0, 0.0).keeps(INSTANT_BYTES, INSTANT_DAYS),
            Self::NamedOneTimeJob => Cost::tables(2.0, 0.0).keeps(2.0 * INSTANT_BYTES, INSTANT_DAYS),
            Self::CreateCall => Cost::tables(0.0, 1.0).functions(1.0, 0.008).logs(CALL_LOG_BYTES),
            Self::ListedJob => Cost::tables(4.0, 1.0).keeps(INSTANT_BYTES, INSTANT_DAYS),
            Self::ListedInstant => Cost::tables(2.0, 0.0).keeps(INSTANT_BYTES, INSTANT_DAYS),
            Self::RowUnit => Cost::tables(1.0, 0.0).keeps(1_024.0, INSTANT_DAYS),
            Self::RowRead => Cost::tables(0.0, 1.0),
            Self::SingleEvent => Cost::tables(0.0, 0.015),
            Self::SingleRecord => {
                Cost::tables(1.0, 0.0).functions(0.0, 0.000_02).keeps(RECORD_BYTES, HISTORY)
            }
            Self::SingleChunk => Cost::tables(0.0, 1.0).functions(0.0, 0.001),
            Self::ChunkMark => Cost::tables(1.0, 0.0),
            Self::BatchRun => Cost::tables(1.0, 0.0).keeps(RUN_BYTES, HISTORY),
            Self::RunPart => Cost::tables(5.0, 1.0).queues(3.0).functions(1.0, 0.1),
            Self::BatchChunk => Cost::tables(1.0, 1.0).functions(0.0, 0.001),
            Self::ScanPart => Cost::tables(4.0, 2.0).queues(3.0).functions(1.0, 0.05),
            Self::DispatchSend => Cost::NONE.queues(1.0).functions(0.0, 0.000_5),
            Self::Payload => Cost::NONE.queues(1.0),
            Self::HandlerCall => Cost::NONE.queues(2.0).functions(1.0, 0.018),
            Self::Send => Cost::NONE.queues(1.0).functions(0.0, 0.000_5),
            Self::HttpCall => Cost::NONE.functions(0.0, 0.005),
            Self::HttpWait => Cost::tables(0.0, 0.5).functions(0.0, 0.1),
            Self::ThrottledRun => Cost::tables(11.5, 4.0).keeps(RUN_BYTES, HISTORY),
            Self::Pack => Cost::tables(6.0, 4.0).keeps(RUN_BYTES, HISTORY),
            Self::PackedEvent => Cost::tables(0.06, 0.02).keeps(60.0, HISTORY),
            Self::SharedEvent => Cost::tables(0.0, 0.9).functions(0.0, 0.001),
            Self::Overflow => Cost::tables(2.0, 12.0).functions(0.0, 0.05),
            Self::Wake => Cost::tables(0.0, 2.0).functions(0.0, 0.008),
            Self::Range => Cost::tables(4.0, 2.0),
            Self::FreshRange => Cost::tables(4.2, 3.2).functions(0.0, 0.012),
            Self::FreshEvent => Cost::tables(0.9, 0.9).functions(0.0, 0.001),
            Self::Arrival => Cost::tables(4.4, 4.5),
            Self::ArrivedEvent => Cost::tables(0.5, 1.0),
            Self::ReleaseCall => Cost::NONE.functions(1.0, 0.005_4).logs(CALL_LOG_BYTES),
            Self::SlotWrite => Cost::tables(1.0, 0.0).functions(0.0, 0.000_5),
            Self::Compaction => Cost::tables(4.0, 0.2).functions(0.0, 0.01).keeps(RUN_BYTES, HISTORY),
            Self::Activation => Cost::tables(4.0, 1.0),
            Self::ActiveMinute => Cost::tables(1.0, 3.5),
            Self::ActiveGroupMinute => Cost::tables(0.0, 1.0),
            Self::Tick => Cost::tables(2.0, 38.0).functions(1.0, 0.075).logs(TICK_LOG_BYTES),
            Self::TickZone => Cost::tables(0.0, 6.0).functions(0.0, 0.006),
            Self::PolledMinute => Cost::NONE.queues(45.0),
        }
    }
}

/// How often each step is done.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Steps([f64; Step::ALL.len()]);

impl Default for Steps {
    fn default() -> Self {
        Self([0.0; Step::ALL.len()])
    }
}

impl Steps {
    /// Counts a step so many times more.
    pub fn add(&mut self, step: Step, times: f64) {
        if let Some(count) = self.0.get_mut(step as usize) {
            *count += times;
        }
    }

    /// Counts what others counted.
    pub fn add_all(&mut self, others: &Self) {
        self.0.iter_mut().zip(others.0).for_each(|(count, more)| *count += more);
    }

    /// How often a step is done.
    pub fn of(&self, step: Step) -> f64 {
        self.0.get(step as usize).copied().unwrap_or_default()
    }

    /// The same, each so many times as often.
    #[must_use]
    pub fn scaled(&self, times: f64) -> Self {
        Self(self.0.map(|count| count * times))
    }

    /// What all of them take.
    pub fn cost(&self) -> Cost {
        let each = Step::ALL.into_iter().zip(self.0);
        each.fold(Cost::NONE, |sum, (step, count)| sum + step.cost() * count)
    }

    /// The steps that are done at all.
    pub fn counted(&self) -> impl Iterator<Item = (Step, f64)> {
        Step::ALL.into_iter().zip(self.0).filter(|(_, count)| *count > 0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_has_its_own_place() {
        for (place, step) in Step::ALL.into_iter().enumerate() {
            assert_eq!(step as usize, place, "{step:?}");
        }
        let mut steps = Steps::default();
        steps.add(Step::Send, 2.0);
        steps.add(Step::PolledMinute, 1.0);
        assert_eq!(steps.counted().collect::<Vec<_>>(), [(Step::Send, 2.0), (Step::PolledMinute, 1.0)]);
        assert_eq!(steps.cost(), Step::Send.cost() * 2.0 + Step::PolledMinute.cost());
    }
}
