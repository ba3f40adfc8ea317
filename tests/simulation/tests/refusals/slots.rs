//! The clauses of slot groups: each transition, on a row that was changed so that all of them hold but one.

use anyhow::{Context as _, Result};
use tidegate_domain::fair::Rank;
use tidegate_domain::job::HistoryDays;
use tidegate_domain::retry::Tries;
use tidegate_domain::slots::{
    GroupKey, LeaseEnd, NewLease, Outcome, PackRef, Range, Share, SlotGroup, Transition,
};
use tidegate_simulation::World;
use tidegate_simulation::mutants::Mutant;
use tidegate_store::line::Requeued;
use tidegate_store::slots::Written;
use tidegate_store::{Create, Store, StoreError};

use super::{at, is_refused, tamper};

/// What makes a clause untrue, where a lease is in slot 0 and slot 1 is free.
const UNTRUE: [(&str, &str); 28] = [
    ("attribute_exists(pk_oc)", "REMOVE pk_oc"),
    ("attribute_exists(want)", "REMOVE want"),
    ("attribute_not_exists(dl) OR dl > :v", "SET dl = :0"),
    ("attribute_not_exists(f#)", "SET f1 = fc, r1 = rn, i1 = nx, e1 = fc"),
    ("attribute_not_exists(pk_oc)", "SET pk_oc = oc"),
    ("attribute_not_exists(rc)", "SET rc = :2"),
    ("attribute_not_exists(rt) OR rt <> :v", "SET rt = :true"),
    ("attribute_not_exists(t#)", "SET t0 = :2"),
    ("attribute_not_exists(w#)", "SET w0 = :2"),
    ("attribute_not_exists(want)", "SET want = :entry"),
    ("cap = :v", "SET cap = :99"),
    ("e# = :v", "SET e0 = :99"),
    ("f# = :v", "SET f0 = :99"),
    ("fs = :v", "SET fs = :99"),
    ("gs = :v", "SET gs = :99"),
    ("held <= :v", "SET held = :99"),
    ("held <= cap", "SET held = :99"),
    ("i# = :v", "SET i0 = :99"),
    ("lf = :v", "SET lf = :99"),
    ("lf >= :v", "SET lf = :0"),
    ("nx = :v", "SET nx = :99"),
    ("pr < :v", "SET pr = :99"),
    ("r# = :v", "SET r0 = :99"),
    ("rc = :v", "REMOVE rc"),
    ("rn = :v", "SET rn = :99"),
    ("t# = :v", "REMOVE t0"),
    ("w# = :v", "REMOVE w0"),
    ("x# = :v", "SET x1 = :pack"),
];

/// A transition, and a change of its row that breaks one of its clauses.
pub(crate) struct Case {
    transition: &'static str,
    clause: &'static str,
    change: &'static str,
}

impl Case {
    /// The case of a mutant of slot groups.
    pub(crate) fn of(mutant: &'static Mutant) -> Option<Self> {
        let (transition, clause) = mutant.name.strip_prefix("slots ")?.split_once(": ")?;
        let (_, change) = UNTRUE.iter().find(|(known, _)| *known == clause)?;
        Some(Self { transition, clause, change })
    }

    /// Whether the transition is refused, on a group of this number.
    pub(crate) async fn is_refused(&self, world: &World, number: u32, store: &Store) -> Result<bool> {
        let plain = world.engine.store();
        let group = self.group(plain, number).await?;
        tamper(world, "policies", (&format!("acme|small|{number:04}"), "slots"), self.change).await?;
        if self.transition == "transact drop range" {
            let (range, pack) = (*group.range().context("no range")?, pack()?);
            return Ok(is_refused(store.return_range(&group, range, (&pack, Rank::of_all(5), at(0))).await?));
        }
        if self.transition == "transact requeue" {
            let tries = Tries { made: 1, failed: 1, since_s: 0 };
            let back = Requeued { pack: pack()?.pack, priority: 5, tries, due_at: at(90) };
            return Ok(is_refused(store.requeue(&group.key, &[(held(&group)?.lease, back)]).await?));
        }
        match store.perform(&group.key, &self.tried(&group)?).await {
            Ok(Written::Refused(_)) => Ok(true),
            // What was written may be no group any more.
            Ok(Written::Done(_)) | Err(StoreError::Corrupt { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// The group before the transition. What is absent where it would be one is there when the clause compares it.
    async fn group(&self, store: &Store, number: u32) -> Result<SlotGroup> {
        let group = new(store, number).await?;
        if ["admit", "bar admission", "begin refill"].contains(&self.transition) {
            return Ok(group);
        }
        let group = performed(store, &group, &Transition::begin_refill(&group, "5|entry")).await?;
        if ["commit refill", "end refill"].contains(&self.transition) {
            return Ok(group);
        }
        let is_one = !["rc = :v", "t# = :v", "w# = :v"].contains(&self.clause);
        let group = served(store, &group, if is_one { 1 } else { 2 }).await?;
        match (is_one, self.transition) {
            (false, _) => {
                let seen = group.leases.get(&0).context("no lease")?;
                performed(store, &group, &Transition::renew(&group, seen, lease())).await
            }
            (_, "end compaction") => performed(store, &group, &Transition::begin_compaction(&group)).await,
            _ => Ok(group),
        }
    }

    fn tried(&self, group: &SlotGroup) -> Result<Transition> {
        let (end, seen) = (held(group), group.leases.get(&0).context("no lease"));
        Ok(match self.transition {
            "admit" => Transition::admit(group, &[1], 1, pack()?, lease()),
            "bar admission" => Transition::bar_admission(group.refills),
            "begin compaction" => Transition::begin_compaction(group),
            "begin refill" => Transition::begin_refill(group, "5|entry"),
            "commit refill" => {
                let range = Range { pack_number: 0, next: 0, left: 20, cost: 1, deadline: None };
                Transition::commit_refill(group, Some((range, pack()?)))
            }
            "drop range" => Transition::drop_range(group, *group.range().context("no range")?),
            "end compaction" => Transition::end_compaction(group),
            "end refill" => Transition::commit_refill(group, None),
            "expire" => Transition::expire(group, seen?, end?),
            "extend" => Transition::extend(end?.lease, at(90)),
            "free" => Transition::free(&[end?]),
            "grant" => Transition::grant(group, &[1], lease(), at(0)),
            "hand off" => Transition::hand_off(&[end?], lease(), at(0)),
            "note sent" => Transition::note_sent(&[end?.lease]),
            "renew" => Transition::renew(group, seen?, lease()),
            "set share" => Transition::set_share(Share { plan: 2, ..group.share }),
            "recheck" => Transition::mark_for_recheck(1, &pack()?),
            other => anyhow::bail!("no transition is called {other}"),
        })
    }
}

async fn new(store: &Store, number: u32) -> Result<SlotGroup> {
    let key = GroupKey { client: "acme".parse()?, policy: "small".parse()?, group: number };
    let share = Share { plan: 1, groups: 1, limit: 8, cap: 8, rated: false };
    let group = SlotGroup::new(key, share);
    anyhow::ensure!(store.create_slot_group(&group).await? == Create::Done, "there is a group {number}");
    Ok(group)
}

/// Gives a group that refills twenty events, and the first of them a lease in slot 0.
async fn served(store: &Store, group: &SlotGroup, cost: u32) -> Result<SlotGroup> {
    let range = Range { pack_number: 0, next: 0, left: 20, cost, deadline: Some(at(600)) };
    let group = performed(store, group, &Transition::commit_refill(group, Some((range, pack()?)))).await?;
    performed(store, &group, &Transition::grant(&group, &[0], lease(), at(0))).await
}

/// A group that serves the run `report.1.1795262640`.
pub(crate) async fn serving(store: &Store, number: u32) -> Result<SlotGroup> {
    let group = new(store, number).await?;
    let group = performed(store, &group, &Transition::begin_refill(&group, "5|entry")).await?;
    served(store, &group, 1).await
}

fn lease() -> NewLease {
    NewLease { ends_at: at(60), write_id: 1 }
}

fn pack() -> Result<PackRef> {
    Ok(PackRef {
        pack: "report.1.1795262640".parse()?,
        watched: false,
        recheck: false,
        history_days: HistoryDays::DEFAULT,
        tries: None,
    })
}

/// The end of the lease in slot 0.
fn held(group: &SlotGroup) -> Result<LeaseEnd> {
    let lease = group.leases.get(&0).context("no lease")?;
    Ok(LeaseEnd { lease: lease.id, attempt: lease.attempt, outcome: Outcome::Succeeded })
}

async fn performed(store: &Store, group: &SlotGroup, transition: &Transition) -> Result<SlotGroup> {
    match store.perform(&group.key, transition).await? {
        Written::Done(group) => Ok(group),
        Written::Refused(_) => anyhow::bail!("refused: {transition:?}"),
    }
}
