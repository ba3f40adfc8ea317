//! The outbox: the master emits the first launches of a job, and keeps a row of them until it has.

use futures::future::BoxFuture;
use tidegate_store::launch::OutboxEntry;

use super::Emission;
use super::sink::{Counts, EmitSink, Flushed};
use crate::scan::{Scan, plan_at_once};
use crate::{EngineError, deadline};

/// How long the master works on the events of a run that it emits itself, in seconds; then workers take the rest.
const OWN_WORK_SECONDS: i64 = 10;

/// Who emits launches outside of a scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Emitter {
    /// A tick: it tells workers of the parts that it leaves.
    Tick,
    /// The master, which may not send to the scan queue: it works on them itself, and the next tick looks after the rest.
    Master,
}

impl Emission {
    /// Emits the launches of an outbox row, then removes the row.
    pub(crate) async fn publish(
        &self,
        outbox: &OutboxEntry,
        repeat: bool,
        emitter: Emitter,
    ) -> Result<Counts, EngineError> {
        let counts = self.emit_launches(outbox, repeat, emitter).await?;
        self.store.ack_outbox(&outbox.child).await?;
        Ok(counts)
    }

    /// Emits launches of one job, whatever their age: nobody was late for them. In a box: a bulk call asks it of each of its jobs,
    /// most of which have none.
    pub(crate) fn emit_launches<'a>(
        &'a self,
        outbox: &'a OutboxEntry,
        repeat: bool,
        emitter: Emitter,
    ) -> BoxFuture<'a, Result<Counts, EngineError>> {
        Box::pin(async move {
            let mut emission = EmitSink::new(self, outbox.written_at, repeat);
            let mut scan = Scan::new(&self.store, &self.contents, plan_at_once(self.clock.now(), repeat));
            let mut after = None;
            loop {
                after = scan.launches(&outbox.child, outbox.window, after, &mut emission).await?;
                let Flushed { failed, parts, .. } = emission.flush().await?;
                if let Some((_, error)) = failed.into_iter().next() {
                    return Err(error);
                }
                match emitter {
                    Emitter::Tick => self.queues.send_parts(&parts).await?,
                    Emitter::Master => {
                        for part in parts {
                            // The next tick looks after the rest.
                            if deadline::is_over(&*self.clock) {
                                break;
                            }
                            self.work_on(&part, OWN_WORK_SECONDS, false).await?;
                        }
                    }
                }
                if after.is_none() {
                    return Ok(emission.counts);
                }
                // The row is still in the outbox: its launches are emitted again by the tick.
                deadline::check(&*self.clock)?;
            }
        })
    }
}
