//! The emitter's rows: the watermark goes back, and parts of emissions begin anew.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use tidegate_domain::limits::LOOK_AHEAD_SECONDS;
use tidegate_domain::time::{seconds, shifted};
use tidegate_store::Create;
use tidegate_store::scans::{Part, Task};
use tidegate_store::ticker::Watermark;

use super::RepairError;
use super::report::FindingKind;
use super::session::{Session, done};

/// How far ticks may have got on after the snapshot of their table, in seconds: one more minute was planned.
const ANOTHER_TICK_SECONDS: i64 = 60;
/// Ticks that were further behind than this were catching up, in seconds.
const BEHIND_SECONDS: i64 = 600;

/// From when on launches are emitted again: `back_to`, or further back, where ticks were catching up.
pub(super) fn back_to(watermark: Option<&Watermark>, back_to: DateTime<Utc>) -> DateTime<Utc> {
    let marks = watermark.into_iter().flat_map(|mark| [Some(mark.scanned_to), mark.past]).flatten();
    let back_to = marks.chain([back_to]).min().unwrap_or(back_to);
    DateTime::from_timestamp(back_to.timestamp().div_euclid(60).saturating_mul(60), 0).unwrap_or(back_to)
}

impl Session<'_> {
    /// Has every part of an emission begin anew: how far it came is of another instant than what it wrote. Returns the ids
    /// of the parts.
    pub(super) async fn begin_parts_anew(&self) -> Result<BTreeSet<String>, RepairError> {
        let (mut ids, mut after) = (BTreeSet::new(), None);
        loop {
            let page = self.store.parts(after).await?;
            let mut parts = Vec::with_capacity(page.rows.len());
            for (id, part) in page.rows {
                ids.insert(id.clone());
                match part {
                    Ok(part) => parts.push(part),
                    Err(error) => self.found(FindingKind::Unreadable, "", id, error.to_string()),
                }
            }
            self.look_at_each(parts.iter().map(|part| self.begin_part_anew(part))).await?;
            after = page.next;
            if after.is_none() {
                return Ok(ids);
            }
        }
    }

    async fn begin_part_anew(&self, part: &Part) -> Result<(), RepairError> {
        if let Task::Events { occurrence, .. } = &part.task
            && self.store.run(&occurrence.client, &occurrence.run_id()).await?.is_none()
        {
            self.found(FindingKind::RunMadeAgain, &occurrence.client, occurrence.run_id(), "");
            if self.apply {
                let _done_or_there: Create = self.store.create_run(occurrence, self.now).await?;
            }
        }
        if !part.is_begun_anew() {
            self.found(FindingKind::PartBegunAnew, "", &part.id, "");
            if self.apply {
                let written = self.store.begin_part_anew(part).await?;
                done(written, || format!("part {}", part.id))?;
            }
        }
        Ok(())
    }

    /// Sets the watermark back. What was planned before the snapshots is emitted again as it was evaluated then.
    pub(super) async fn set_watermark_back(&self, seen: Option<&Watermark>) -> Result<(), RepairError> {
        let Some(seen) = seen.filter(|seen| seen.scanned_to > self.back_to) else { return Ok(()) };
        let now_planned = shifted(self.now, seconds(i64::from(LOOK_AHEAD_SECONDS) - ANOTHER_TICK_SECONDS));
        let another = shifted(seen.planned_to, seconds(ANOTHER_TICK_SECONDS));
        let planned_to = another.min(now_planned).max(seen.planned_to);
        let planned_to =
            DateTime::from_timestamp(planned_to.timestamp().div_euclid(60).saturating_mul(60), 0)
                .unwrap_or(planned_to);
        let planned_to = planned_to.max(seen.planned_to);
        let missed_before = match seen.past {
            Some(past) if past < shifted(seen.missed_before, -seconds(BEHIND_SECONDS)) => {
                seen.missed_before.min(seen.taken_over_missed_before)
            }
            _ => self.back_to,
        };
        let detail = format!("from {} to {}", seen.scanned_to, self.back_to);
        self.found(FindingKind::WatermarkSetBack, "", "watermark", detail);
        if self.apply {
            let written =
                self.store.set_watermark_back(seen, (self.back_to, planned_to), missed_before).await?;
            done(written, || "the watermark".to_owned())?;
        }
        Ok(())
    }
}
