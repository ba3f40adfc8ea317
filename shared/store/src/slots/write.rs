//! The writes on slot groups: transitions, alone or in one transaction with what they move.

use chrono::{DateTime, Utc};
use tidegate_domain::fair::Rank;
use tidegate_domain::ids::{JobId, RunId};
use tidegate_domain::slots::{GroupKey, LeaseId, PackRef, Range, SlotGroup, Transition};

use super::{expression, key, row};
use crate::item::{Key, Row};
use crate::line::{Requeued, requeued_row, returned_row, sidelined_row};
use crate::rows::Updated;
use crate::runs::left_out_update;
use crate::tables::Table;
use crate::{Create, Result, Store, Write};

/// What came of a transition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Written {
    /// It took place; the group as it is now.
    Done(SlotGroup),
    /// A clause did not hold; the group as it is, `None` if there is no such row.
    Refused(Option<SlotGroup>),
}

impl Store {
    /// Groups whose ranges are dropped in one transaction: more would be refused more often, since each of them may change.
    pub const RANGES_AT_ONCE: usize = 25;

    /// A slot group, read consistently; `None` when it was never used.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer, `StoreError::Corrupt` when the row cannot
    /// be read.
    pub async fn slot_group(&self, group: &GroupKey) -> Result<Option<SlotGroup>> {
        let found = self.get(Table::Policies, &key(group), true).await?;
        found.map(|found| row::read(group, &found)).transpose()
    }

    /// Slot groups, read consistently and together: each that was used, and why it cannot be read where it cannot. In the
    /// order that they are asked for.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses a call or does not answer.
    pub async fn slot_groups(&self, groups: &[GroupKey]) -> Result<Vec<Result<Option<SlotGroup>>>> {
        let keys: Vec<Key> = groups.iter().map(key).collect();
        let found = self.get_all(Table::Policies, &keys.iter().collect::<Vec<_>>(), true).await?;
        let group = |(group, key)| found.get(key).map(|found| row::read(group, found)).transpose();
        Ok(groups.iter().zip(&keys).map(group).collect())
    }

    /// Creates a group that was never used. `Exists` when it is there, and it stays as it is.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer.
    pub async fn create_slot_group(&self, group: &SlotGroup) -> Result<Create> {
        self.put_new(Table::Policies, row::new_row(group)).await
    }

    /// Performs a transition: one conditional write, whose condition is its clauses.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer, `StoreError::Corrupt` when the row cannot
    /// be read. In the latter case it may have taken place.
    pub async fn perform(&self, group: &GroupKey, transition: &Transition) -> Result<Written> {
        let read = |found| row::read(group, &found);
        Ok(match self.update(expression::update(group, transition)).await? {
            Updated::Done(found) => Written::Done(read(found)?),
            Updated::Refused(found) => Written::Refused(found.map(read).transpose()?),
        })
    }

    /// Gives what is left of the group's range back to the line, as an entry of its own: both or neither, once.
    /// `Refused` when the group no longer has exactly this range.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer, or when the transaction still conflicts
    /// with others after `WRITE_ROUNDS` more attempts: nothing is written then.
    pub async fn return_range(
        &self,
        seen: &SlotGroup,
        range: Range,
        (pack, rank, launch_at): (&PackRef, Rank, DateTime<Utc>),
    ) -> Result<Write> {
        let Range { next, left, .. } = range;
        let place = (pack, rank, launch_at);
        let entry = returned_row(&seen.key, seen.refills, place, (next, next + left));
        let dropped = expression::update(&seen.key, &Transition::drop_range(seen, range));
        let items = vec![self.update_item_of(dropped)?, self.put_item_of(Table::Policies, entry)?];
        self.transact(Table::Policies, items).await
    }

    /// Events of leases of a group go back to the line, since their targets did not take them, and the leases end: all or
    /// nothing, once. `Refused` when one of the leases is not the present one of its slot.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer, or when the transaction still conflicts
    /// with others after `WRITE_ROUNDS` more attempts: nothing is written then.
    pub async fn requeue(&self, group: &GroupKey, events: &[(LeaseId, Requeued)]) -> Result<Write> {
        let row = |(lease, back): &(LeaseId, Requeued)| (*lease, requeued_row(group, *lease, back));
        self.back_to_line(group, events.iter().map(row)).await
    }

    /// The same of events whose jobs are sidelined: each waits until it rejoins the line.
    ///
    /// # Errors
    /// As [`Self::requeue`].
    pub async fn sideline(&self, group: &GroupKey, events: &[(LeaseId, JobId, Requeued)]) -> Result<Write> {
        let row =
            |(lease, job, at): &(LeaseId, JobId, Requeued)| (*lease, sidelined_row(group, (job, *lease), at));
        self.back_to_line(group, events.iter().map(row)).await
    }

    async fn back_to_line(
        &self,
        group: &GroupKey,
        entries: impl Iterator<Item = (LeaseId, Row)>,
    ) -> Result<Write> {
        let (leases, entries): (Vec<LeaseId>, Vec<Row>) = entries.unzip();
        let freed = expression::update(group, &Transition::requeue(&leases));
        let mut items = vec![self.update_item_of(freed)?];
        for entry in entries {
            items.push(self.put_item_of(Table::Policies, entry)?);
        }
        self.transact(Table::Policies, items).await
    }

    /// Drops what is left of the group's range, since its run was stopped, and counts it in the run's row: both or
    /// neither, once. A run whose row has expired is not counted. `Refused` when the group no longer has exactly this
    /// range.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer, or when the transaction still conflicts
    /// with others after `WRITE_ROUNDS` more attempts: nothing is written then. `StoreError::Corrupt` when the range is
    /// another and the run's row cannot be read.
    pub async fn drop_range(&self, seen: &SlotGroup, range: Range, run: &RunId) -> Result<Write> {
        if self.drop_ranges(&[(seen, range)], run).await? == Write::Done {
            return Ok(Write::Done);
        }
        match self.run(&seen.key.client, run).await? {
            Some(_) => Ok(Write::Refused),
            // The row of the run has expired: there is nothing to count in.
            None => self.drop_uncounted(seen, range).await,
        }
    }

    /// The same for several groups of one policy, up to [`Self::RANGES_AT_ONCE`]: all or none. `Refused` when one of them no
    /// longer has exactly its range, or the row of the run has expired.
    ///
    /// # Errors
    /// `StoreError::Aws` as for [`Self::drop_range`]: nothing is written then.
    pub async fn drop_ranges(&self, ranges: &[(&SlotGroup, Range)], run: &RunId) -> Result<Write> {
        let Some((first, _)) = ranges.first() else { return Ok(Write::Done) };
        let left_out = ranges.iter().fold(0_u32, |sum, (_, range)| sum.saturating_add(range.left));
        let mut items = vec![self.update_item_of(left_out_update(&first.key.client, run, left_out))?];
        for (seen, range) in ranges {
            let dropped = expression::update(&seen.key, &Transition::drop_range(seen, *range));
            items.push(self.update_item_of(dropped)?);
        }
        self.transact(Table::Policies, items).await
    }

    /// Drops what is left of the group's range, which nothing counts: that of a pack of single events, or of a run whose row has
    /// expired. `Refused` when
    /// the group no longer has exactly this range.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer.
    pub async fn drop_uncounted(&self, seen: &SlotGroup, range: Range) -> Result<Write> {
        Ok(self.update(expression::update(&seen.key, &Transition::drop_range(seen, range))).await?.into())
    }
}
