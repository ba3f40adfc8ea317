//! Parts of a large scan, worked on in parallel by whoever gets the message of the scan queue.

use chrono::{DateTime, Utc};
use tidegate_domain::time::{seconds, shifted};
use tidegate_store::Write;
use tidegate_store::launch::Shard;
use tidegate_store::scans::{ScanPart, TakePart};
use tracing::{info, warn};

use super::Scan;
use super::judge::Plan;
use crate::emit::Emission;
use crate::message::Message;
use crate::{Engine, EngineError};

/// How long a worker has a part after it last moved the cursor, in seconds. The function must time out before.
const PART_LEASE_SECONDS: i64 = 57;
/// How long a worker goes on with new pages, in seconds; then another one takes the rest.
const PART_WORK_SECONDS: i64 = 25;
/// Pages between two moves of the cursor.
const PAGES_PER_MOVE: usize = 4;

impl Engine {
    /// Leaves the rest of a shard, after `cursor`, to a worker of its own.
    pub(super) async fn leave_part(
        &self,
        plan: &Plan,
        shard: &Shard,
        cursor: String,
    ) -> Result<(), EngineError> {
        let part = ScanPart {
            partition: shard.partition(),
            range: shard.range(),
            cursor: Some(cursor),
            window: plan.window,
            repeat_before: plan.repeat_before,
            missed_before: plan.missed_before,
            repeat_missed_before: plan.repeat_missed_before,
            as_of: plan.as_of,
            fence: 0,
            lease_end: DateTime::<Utc>::UNIX_EPOCH,
        };
        // The row first: when the message is lost, the next tick sends another.
        self.store().put_scan_part(&part).await?;
        self.send_part(&part).await
    }

    async fn send_part(&self, part: &ScanPart) -> Result<(), EngineError> {
        self.send_scan(&Message::Scan { part: part.id() }).await
    }

    /// Sends the messages of the parts that nobody works on.
    pub(crate) async fn wake_parts(&self, now: DateTime<Utc>) -> Result<u64, EngineError> {
        let (mut woken, mut after) = (0, None);
        loop {
            let page = self.store().scan_parts(after).await?;
            for part in page.rows.iter().filter(|part| part.lease_end <= now) {
                self.send_part(part).await?;
                woken += 1;
            }
            after = page.next;
            if after.is_none() {
                return Ok(woken);
            }
        }
    }

    /// Works on a part, for a while.
    pub(crate) async fn scan_part(&self, id: &str) -> Result<(), EngineError> {
        let started_at = self.now();
        let mut part = match self.store().take_scan_part(id, started_at, lease_end(started_at)).await? {
            TakePart::Taken(part) => part,
            TakePart::Busy | TakePart::Gone => return Ok(()),
        };
        let plan = Plan {
            window: part.window,
            as_of: part.as_of,
            repeat_before: part.repeat_before,
            missed_before: part.missed_before,
            repeat_missed_before: part.repeat_missed_before,
            now: started_at,
        };
        let mut scan = Scan::new(self, plan);
        loop {
            let mut emission = Emission::new(self, part.as_of);
            // Only the first worker knows that nobody emitted these pages before.
            let more = self.part_pages(&mut part, &mut scan, &mut emission).await?;
            emission.finish().await?;
            let now = self.now();
            if !more {
                self.store().finish_scan_part(&part).await?;
                info!(part = id, report = ?scan.report, "a part of a scan is done");
                return Ok(());
            }
            let cursor = part.cursor.clone().unwrap_or_default();
            let hand_on = (now - started_at).num_seconds() >= PART_WORK_SECONDS;
            let until = if hand_on { now } else { lease_end(now) };
            if self.store().move_scan_part(&part, &cursor, until).await? == Write::Refused {
                warn!(part = id, "a part of a scan was taken over");
                return Ok(());
            }
            if hand_on {
                return self.send_part(&part).await;
            }
        }
    }

    /// Emits some pages; whether more are left.
    async fn part_pages(
        &self,
        part: &mut ScanPart,
        scan: &mut Scan<'_>,
        emission: &mut Emission<'_>,
    ) -> Result<bool, EngineError> {
        let again = part.fence > 1;
        for _ in 0..PAGES_PER_MOVE {
            let (partition, range) = (part.partition.clone(), part.range.clone());
            let page = self.store().children_between(partition, range, part.cursor.clone()).await?;
            scan.page(page.rows, again, emission).await?;
            let Some(next) = page.next else { return Ok(false) };
            part.cursor = Some(next);
        }
        Ok(true)
    }
}

fn lease_end(now: DateTime<Utc>) -> DateTime<Utc> {
    shifted(now, seconds(PART_LEASE_SECONDS))
}
