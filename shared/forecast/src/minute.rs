//! What is due within a minute: the emission of the engine in numbers.
//!
//! Chunks are cut by instant and kind of target, packs by line and minute; an emission that is full writes and sends what it
//! has, and cuts anew. By that, what a minute takes follows from how many events fall on each of its seconds.

use tidegate_domain::limits::{CHUNK_BYTES, EVENTS_PER_CHUNK, HTTP_EVENTS_PER_CHUNK};

/// Seconds of a minute.
pub(crate) const SECONDS: usize = 60;
/// Single events that an emission takes before it is full: `FULL_LOAD` of the engine's `emit/sink.rs`, 2 for each.
const SINGLES_OF_AN_EMISSION: f64 = 2_500.0;
/// Runs that an emission takes before it is full: 10 for each write, 1 for its row.
const RUNS_OF_AN_EMISSION: f64 = 450.0;
/// What SQS bills as a request.
const BILLED_BYTES: f64 = 64.0 * 1024.0;
/// Messages of a call.
pub(crate) const CALL_MESSAGES: f64 = 10.0;

/// Counts for each second of a minute.
pub(crate) type Seconds = [f64; SECONDS];

/// Single events of one kind of target that nothing throttles.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Singles {
    pub(crate) events: Seconds,
    pub(crate) bytes: f64,
}

impl Default for Singles {
    fn default() -> Self {
        Self { events: [0.0; SECONDS], bytes: 0.0 }
    }
}

/// Chunks that some single events of one second are cut into.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Chunks {
    pub(crate) chunks: f64,
    /// Of these, those that hold one event.
    pub(crate) lone: f64,
    /// Calls that send their events to a queue.
    pub(crate) sends: f64,
    /// 64 KB beyond what a message is billed for as a tenth of a call.
    pub(crate) payload: f64,
}

/// Events that a chunk holds.
pub(crate) fn events_per_chunk(is_http: bool, item_bytes: f64) -> f64 {
    let most = if is_http { HTTP_EVENTS_PER_CHUNK } else { EVENTS_PER_CHUNK };
    f64::from(most).min((CHUNK_BYTES as f64 / item_bytes.max(1.0)).floor()).max(1.0)
}

/// In how many emissions a minute is written and sent.
pub(crate) fn emissions(singles: f64, runs: f64) -> f64 {
    (singles / SINGLES_OF_AN_EMISSION + runs / RUNS_OF_AN_EMISSION).ceil().max(1.0)
}

/// Cuts events of one second, which come in some emissions.
pub(crate) fn cut(events: f64, item_bytes: f64, is_http: bool, emissions: f64) -> Chunks {
    if events <= 0.0 {
        return Chunks::default();
    }
    let (emissions, most) = (emissions.min(events), events_per_chunk(is_http, item_bytes));
    let of_one = events / emissions;
    let (full, rest) = ((of_one / most).floor(), of_one % most);
    let calls = |events: f64| if is_http { 0.0 } else { (events / CALL_MESSAGES - 1e-9).ceil() };
    let chunks = emissions * (full + if rest > 1e-9 { 1.0 } else { 0.0 });
    let sends = emissions * (full * calls(most) + calls(rest));
    let holds_one = |events: f64| (events - 1.0).abs() < 1e-9;
    let lone =
        emissions * (if holds_one(most) { full } else { 0.0 } + if holds_one(rest) { 1.0 } else { 0.0 });
    Chunks { chunks, lone, sends, payload: payload(chunks, events * item_bytes) }
}

/// What messages are billed for beyond a tenth of a call each, when they are sent and when they are received.
pub(crate) fn payload(messages: f64, bytes: f64) -> f64 {
    2.0 * (bytes / BILLED_BYTES - messages / CALL_MESSAGES).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_a_second_share_chunks_within_an_emission() {
        let plain = |events, emissions| {
            let Chunks { chunks, sends, .. } = cut(events, 250.0, false, emissions);
            (chunks, sends)
        };
        assert_eq!(plain(1.0, 1.0), (1.0, 1.0));
        assert_eq!(plain(100.0, 1.0), (1.0, 10.0));
        assert_eq!(plain(101.0, 1.0), (2.0, 11.0));
        // Two emissions have 50 each.
        assert_eq!(plain(100.0, 2.0), (2.0, 10.0));
        assert_eq!(plain(1.0, 9.0), (1.0, 1.0));
        assert_eq!(cut(100.0, 250.0, true, 1.0).chunks, 5.0);
        // 60 KB hold 61 events of 1,000 bytes.
        assert_eq!(cut(122.0, 1_000.0, false, 1.0).chunks, 2.0);
    }
}
