//! Receiving with patience: a look at the queue, and a wait until another look is worth it.
//!
//! A long poll ends when a message is there, when its time is over, by real time or by the injected clock, or when the
//! queue is gone. It is woken by a send, and by itself when the next message becomes visible.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::error::Failure;
use super::receive::{self, Look};
use super::requests::{self, Served};
use super::taken::{Taken, Wanted};
use super::wire::{Messages, ReceiveMessage, Received};
use super::{Sqs, fifo};

/// The longest time between two looks: so long a long poll takes to see that an injected clock was moved.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// A queue that had nothing to give.
struct Idle {
    wait_s: i64,
    next_at_ms: i64,
    wake: Arc<Notify>,
    over_limit: bool,
}

/// What a queue gave.
struct Found {
    queue_id: i64,
    rows: Vec<Taken>,
}

impl Found {
    /// Told, with their digests, when others have the queues again.
    fn served(&self, url: &str, wanted: &Wanted) -> Served {
        let messages: Vec<Received<'_>> =
            self.rows.iter().flat_map(|row| row.told(self.queue_id, wanted)).collect();
        let payload_bytes = messages.iter().map(Received::payload_bytes).sum();
        Served::new(url, &Messages { messages: &messages }, payload_bytes, messages.len())
    }
}

impl Sqs {
    /// Serves a receive.
    pub(super) async fn receive(&self, body: &[u8]) -> Result<Served, Failure> {
        let mut request: ReceiveMessage = requests::parse(body)?;
        let url = std::mem::take(&mut request.queue_url);
        let wanted = Wanted::parse(request)?;
        let (started, started_at_ms) = (Instant::now(), self.now_ms());
        loop {
            let idle = match self.look(&url, &wanted)? {
                Ok(found) => return Ok(found.served(&url, &wanted)),
                Err(idle) => idle,
            };
            let wait = Duration::from_secs(idle.wait_s.unsigned_abs());
            let waited_ms = self.now_ms() - started_at_ms;
            if wait.is_zero() && idle.over_limit {
                return Err(receive::over_limit().into());
            }
            if started.elapsed() >= wait || waited_ms >= idle.wait_s * 1000 {
                return Ok(Served::new(&url, &serde_json::json!({}), 0, 0));
            }
            let due_in =
                Duration::from_millis((idle.next_at_ms.saturating_sub(self.now_ms())).max(0).unsigned_abs());
            let look_again = after(started, wait).min(after(Instant::now(), due_in.min(LOOK_AGAIN)));
            tokio::select! {
                () = idle.wake.notified() => {}
                () = sleep_until(look_again) => {}
            }
        }
    }

    fn look(&self, url: &str, wanted: &Wanted) -> Result<Result<Found, Idle>, Failure> {
        self.on_queue_kept(url, self.keeps_receives(url), |desk| {
            let over_limit = match receive::look(desk, wanted)? {
                Look::Found(rows) => return Ok(Ok(Found { queue_id: desk.queue.id, rows })),
                Look::Empty => false,
                Look::OverLimit => true,
            };
            let next_at_ms =
                if desk.queue.is_fifo() { fifo::next_ready_at_ms(desk)? } else { desk.queue.next_due_at_ms };
            let wait_s = wanted.wait_s.unwrap_or(desk.queue.attributes.wait_s);
            Ok(Err(Idle { wait_s, next_at_ms, wake: Arc::clone(&desk.queue.wake), over_limit }))
        })
    }
}

/// An instant so much later; the same where no clock goes that far.
fn after(instant: Instant, wait: Duration) -> Instant {
    instant.checked_add(wait).unwrap_or(instant)
}
