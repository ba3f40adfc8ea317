//! What is due in the minute that is under way, by second.

use std::collections::BTreeMap;

use crate::cost::Cost;
use crate::counted::SecondPeaks;
use crate::dispatch::BATCH_SECONDS;
use crate::facts::{Job, Target};
use crate::job_steps::chunks_of_a_run;
use crate::minute::{CALL_MESSAGES, SECONDS, Seconds, Singles};
use crate::tables::{Table, TableSeconds};

/// A read of the mark of a client, in units.
pub(crate) const MARK_READ: f64 = 1.0;
/// Single events that are written to packs in a second while a minute is planned. *Assumed*: the model of AWS was seen to
/// write 1,392 units of packs in its busiest second.
const PACKED_A_SECOND: f64 = 23_000.0;
/// Write units and read units of a pack that a tick plans, for each of its events. The reads all fall on the instant at which
/// the events are due.
const OF_A_PACKED_EVENT: (f64, f64) = (0.06, 0.04);
/// The same of a pack that a message with single events writes as it arrives.
const OF_AN_ARRIVAL: (f64, f64) = (1.6, 3.8);

/// Something of a policy, or of none, in a second.
type OfPolicy = (usize, Option<usize>);

/// The minute.
#[derive(Debug, Clone)]
pub(crate) struct Due {
    /// Single events that nothing throttles, to queues and to HTTP targets.
    pub(crate) singles: [Singles; 2],
    /// Runs of several events that nothing throttles: second, chunks, events.
    pub(crate) batches: Vec<(usize, f64, f64)>,
    pub(crate) messages: Seconds,
    pub(crate) firings: Seconds,
    pub(crate) events: Seconds,
    /// Events that nothing throttles.
    pub(crate) plain_events: Seconds,
    pub(crate) records: Seconds,
    pub(crate) chunks: Seconds,
    /// Single events that a tick puts into packs, and messages with others that arrive.
    pub(crate) packed: f64,
    pub(crate) arrivals: Seconds,
    pub(crate) tables: TableSeconds,
    /// Events of FIFO queues, by queue.
    fifo: BTreeMap<(usize, OfPolicy), f64>,
    /// Read units of jobs whose payloads do not travel and that lie under their client, and the events that take them.
    client_reads: BTreeMap<OfPolicy, (f64, f64)>,
    /// What it takes so far, and what of that creates jobs.
    pub(crate) cost: Cost,
    pub(crate) creation: Cost,
}

impl Due {
    pub(crate) fn new() -> Self {
        Self {
            singles: [Singles::default(); 2],
            batches: Vec::new(),
            messages: [0.0; SECONDS],
            firings: [0.0; SECONDS],
            events: [0.0; SECONDS],
            plain_events: [0.0; SECONDS],
            records: [0.0; SECONDS],
            chunks: [0.0; SECONDS],
            packed: 0.0,
            arrivals: [0.0; SECONDS],
            tables: TableSeconds::default(),
            fifo: BTreeMap::new(),
            client_reads: BTreeMap::new(),
            cost: Cost::NONE,
            creation: Cost::NONE,
        }
    }

    /// A job fires so many times.
    pub(crate) fn fire(&mut self, second: usize, job: &Job, times: f64) {
        let events = times * f64::from(job.count);
        add(&mut self.firings, second, times);
        add(&mut self.events, second, events);
        if let Target::Fifo(queue) = job.target {
            *self.fifo.entry((queue, (second, job.policy))).or_default() += events;
        }
        if job.row_reads > 0 {
            let (reads, of) = self.client_reads.entry((second, job.policy)).or_default();
            (*reads, *of) = (*reads + times * f64::from(job.row_reads), *of + events);
        }
        if job.policy.is_none() {
            self.fire_plain(second, job, times);
        }
    }

    fn fire_plain(&mut self, second: usize, job: &Job, times: f64) {
        let events = times * f64::from(job.count);
        add(&mut self.plain_events, second, events);
        if job.count > 1 {
            self.batches.push((second, times * chunks_of_a_run(job), events));
            return;
        }
        let [queue, http] = &mut self.singles;
        let singles = if job.target == Target::Http { http } else { queue };
        add(&mut singles.events, second, times);
        singles.bytes += times * f64::from(job.item_bytes);
        if job.keeps_record {
            add(&mut self.records, second, times);
            self.tables.add(Table::Runs, second, (times, 0.0));
        }
    }

    /// Messages with single events of a policy arrive.
    pub(crate) fn arrive(&mut self, second: usize, messages: f64) {
        add(&mut self.arrivals, second, messages);
        add(&mut self.messages, second, messages);
    }

    /// Chunks are due.
    pub(crate) fn chunk(&mut self, second: usize, chunks: f64) {
        add(&mut self.messages, second, chunks);
        add(&mut self.chunks, second, chunks);
        self.tables.add(Table::Clients, second, (0.0, chunks * MARK_READ));
    }

    /// Looks whether a second of it has more than those before. A policy begins no more events in a second than `most_of` says,
    /// and no more messages are handled than the event source has under way.
    pub(crate) fn see(
        &mut self,
        minute: i64,
        most_under_way: f64,
        most_of: impl Fn(usize) -> f64,
        peaks: &mut SecondPeaks,
    ) {
        let paced = |policy: Option<usize>, events: f64| {
            policy.map_or(1.0, |policy| most_of(policy).min(events) / events.max(1e-9))
        };
        let mut rows = [0.0; SECONDS];
        for ((second, policy), (reads, events)) in &self.client_reads {
            add(&mut rows, *second, reads * paced(*policy, *events));
        }
        let mut fifo: BTreeMap<(usize, usize), f64> = BTreeMap::new();
        for ((queue, (second, policy)), events) in &self.fifo {
            *fifo.entry((*queue, *second)).or_default() += events * paced(*policy, *events);
        }
        for ((_, second), events) in fifo {
            peaks.fifo.see(events, minute * 60 + second as i64);
        }
        let handled = most_under_way * CALL_MESSAGES / BATCH_SECONDS;
        for second in 0..SECONDS {
            let at_s = minute * 60 + second as i64;
            let of = |seconds: &Seconds| seconds.get(second).copied().unwrap_or_default();
            let messages = of(&self.messages);
            let part = (handled / messages.max(1e-9)).min(1.0);
            self.tables.add(Table::Jobs, second, (0.0, of(&rows)));
            let planned =
                if second == 0 { self.packed.min(PACKED_A_SECOND) * OF_A_PACKED_EVENT.0 } else { 0.0 };
            let read = if second == 0 { self.packed * OF_A_PACKED_EVENT.1 } else { 0.0 };
            let arrivals = of(&self.arrivals) * part;
            peaks.firings.see(of(&self.firings), at_s);
            peaks.events.see(of(&self.events), at_s);
            peaks.messages.see(messages, at_s);
            peaks.mark_reads.see(of(&self.chunks) * MARK_READ * part, at_s);
            peaks.row_reads.see(of(&rows) * part, at_s);
            peaks.pack_writes.see(planned.max(arrivals * OF_AN_ARRIVAL.0), at_s);
            peaks.pack_reads.see(read.max(arrivals * OF_AN_ARRIVAL.1), at_s);
            self.tables.scale(second, part);
        }
        self.tables.see(minute, &mut peaks.tables);
    }
}

pub(crate) fn add(counts: &mut [f64], place: usize, more: f64) {
    if let Some(count) = counts.get_mut(place) {
        *count += more;
    }
}
