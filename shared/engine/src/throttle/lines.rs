//! Throttled occurrences: they join the lines of their policies. Occurrences go in, rows of the line come out, many writes
//! under way at once.
//!
//! Single events are written in packs, as many as fit; whatever else waits has a row of its own.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use futures::stream::{self, StreamExt, TryStreamExt};
use tidegate_domain::ids::{ClientId, PolicyId};
use tidegate_domain::limits::WRITE_ROUNDS;
use tidegate_domain::occurrence::{Occurrence, SkipReason};
use tidegate_domain::pack::{Singles, SinglesKind};
use tidegate_store::launch::RowKey;
use tidegate_store::line::WaitingRuns;
use tidegate_store::{Create, packs};

use super::Throttle;
use crate::{EngineError, contain, deadline};

/// Writes under way at once.
pub(crate) const WRITES_AT_ONCE: usize = 32;

type LineKey = (ClientId, PolicyId);

/// How many more runs a line takes; `None` for any number.
type Places = Option<u32>;

/// The lines that were joined.
#[derive(Default)]
pub(crate) struct Lines {
    /// Lines that are ready to be joined: their policies are on the list of active ones. Their runs were counted once, and
    /// then what is added here: those whom others add at the same time come on top of a bound.
    ready: BTreeMap<LineKey, Places>,
    /// The number of the next pack of each kind, as far as it is known.
    next_packs: BTreeMap<PackKey, u32>,
    wakes: BTreeSet<(DateTime<Utc>, ClientId, PolicyId)>,
}

type PackKey = (LineKey, SinglesKind);

/// Single events, by their kind of pack.
type Kinds = BTreeMap<PackKey, Vec<Joining>>;

/// Occurrences that are to be written now, and whether they fit into their line.
type Round = Vec<(Joining, bool)>;

/// An occurrence that joins its line, with the row of the index that it follows from.
pub(crate) struct Joining {
    pub(crate) row: Option<RowKey>,
    pub(crate) occurrence: Occurrence,
}

/// What came of it.
#[derive(Default)]
pub(crate) struct Joined {
    pub(crate) runs: u64,
    /// Occurrences that were skipped, since their line is full.
    pub(crate) line_full: u64,
    pub(crate) failed: Vec<Failure>,
}

/// Occurrences that did not get into a row, for one reason.
pub(crate) struct Failure {
    pub(crate) runs: Vec<Joining>,
    pub(crate) error: EngineError,
}

/// What came of single events that were to be packed.
#[derive(Default)]
struct Packed {
    /// The number of the next pack.
    next: u32,
    /// Those that are in packs now, and were not before.
    joined: Vec<Joining>,
    failed: Option<Failure>,
}

/// What came of one occurrence.
enum Place {
    Taken,
    Exists,
    Full,
}

impl Lines {
    /// Writes occurrences, all of which have a policy, into the lines of their policies. Repeating it changes nothing.
    pub(crate) async fn join(&mut self, throttle: &Throttle, joining: Vec<Joining>) -> Joined {
        let mut joined = Joined::default();
        let mut lines = self.lines_of(throttle, joining, &mut joined).await;
        while !lines.is_empty() {
            let round = self.next_round(&mut lines);
            self.join_each(throttle, round, &mut joined).await;
        }
        joined
    }

    /// The same with single events, which are written in packs.
    pub(crate) async fn join_packed(
        &mut self,
        throttle: &Throttle,
        (as_of, repeat): (DateTime<Utc>, bool),
        joining: Vec<Joining>,
    ) -> Joined {
        let mut joined = Joined::default();
        let mut lines = self.lines_of(throttle, joining, &mut joined).await;
        if repeat {
            // Those that are packed already are not skipped because their line is full.
            lines = throttle.not_packed(lines, &mut joined).await;
        }
        while !lines.is_empty() {
            let (packs, mut others) = packs_in(self.next_round(&mut lines));
            others.extend(self.append(throttle, (as_of, repeat), packs, &mut joined).await);
            self.join_each(throttle, others, &mut joined).await;
        }
        joined
    }

    /// Occurrences by their lines, which are ready to be joined.
    async fn lines_of(
        &mut self,
        throttle: &Throttle,
        joining: Vec<Joining>,
        joined: &mut Joined,
    ) -> BTreeMap<LineKey, Vec<Joining>> {
        let mut lines: BTreeMap<LineKey, Vec<Joining>> = BTreeMap::new();
        for run in joining {
            let Some(policy) = run.occurrence.terms.policy.clone() else { continue };
            let Occurrence { client, launch_at, .. } = &run.occurrence;
            self.wakes.insert((*launch_at, client.clone(), policy.clone()));
            lines.entry((client.clone(), policy)).or_default().push(run);
        }
        self.make_ready(throttle, &mut lines, joined).await;
        lines
    }

    /// Writes occurrences one by one. Those that do not fit are skipped.
    async fn join_each(&mut self, throttle: &Throttle, round: Round, joined: &mut Joined) {
        let writes: Vec<_> = round.into_iter().map(|(run, fits)| throttle.join_line(run, fits)).collect();
        let mut writes = stream::iter(writes).buffer_unordered(WRITES_AT_ONCE);
        while let Some((run, written)) = writes.next().await {
            match written {
                Ok(Place::Taken) => {
                    joined.runs += 1;
                    self.take_place(&run.occurrence);
                }
                Ok(Place::Exists) => {}
                Ok(Place::Full) => joined.line_full += 1,
                Err(error) => joined.failed.push(Failure { runs: vec![run], error }),
            }
        }
    }

    /// Which policies something joined since the last call, and when it is due.
    pub(crate) fn take_wakes(&mut self) -> BTreeSet<(DateTime<Utc>, ClientId, PolicyId)> {
        std::mem::take(&mut self.wakes)
    }

    /// Makes the lines ready that were not joined before. Those that cannot be are taken out.
    async fn make_ready(
        &mut self,
        throttle: &Throttle,
        lines: &mut BTreeMap<LineKey, Vec<Joining>>,
        joined: &mut Joined,
    ) {
        let new: Vec<LineKey> = lines.keys().filter(|key| !self.ready.contains_key(*key)).cloned().collect();
        let ready: Vec<_> = new.into_iter().map(|key| throttle.make_line_ready(key)).collect();
        let mut ready = stream::iter(ready).buffer_unordered(WRITES_AT_ONCE);
        while let Some((key, places)) = ready.next().await {
            match places {
                Ok(places) => drop(self.ready.insert(key, places)),
                Err(error) => {
                    let runs = lines.remove(&key).unwrap_or_default();
                    joined.failed.push(Failure { runs, error });
                }
            }
        }
    }

    /// Takes out of each line as many runs as it has places, or all that are left when it has none: they are skipped.
    fn next_round(&self, lines: &mut BTreeMap<LineKey, Vec<Joining>>) -> Round {
        let mut round = Vec::new();
        lines.retain(|key, runs| {
            let places = self.ready.get(key).copied().flatten();
            let fit = places.map_or(runs.len(), |places| runs.len().min(places as usize));
            let rest = if fit == 0 { Vec::new() } else { runs.split_off(fit) };
            round.extend(std::mem::replace(runs, rest).into_iter().map(|run| (run, fit > 0)));
            !runs.is_empty()
        });
        round
    }

    /// Writes packs. Returns the events that must be written one by one, since something of them fits into no pack.
    async fn append(
        &mut self,
        throttle: &Throttle,
        (as_of, repeat): (DateTime<Utc>, bool),
        packs: Kinds,
        joined: &mut Joined,
    ) -> Round {
        let appends: Vec<_> = packs
            .into_iter()
            .map(|(key, members)| {
                // Whoever was here before may have recorded that some are skipped: by their full line, or as it was then.
                let is_bounded = self.ready.get(&key.0).is_some_and(Option::is_some);
                let next = self.next_packs.get(&key).copied().unwrap_or_default();
                let as_of = (!repeat && !is_bounded).then_some(as_of);
                async move { (key.clone(), throttle.append_packs(&key, next, as_of, members).await) }
            })
            .collect();
        let mut appends = stream::iter(appends).buffer_unordered(WRITES_AT_ONCE);
        let mut alone = Vec::new();
        while let Some((key, Packed { next, joined: members, failed })) = appends.next().await {
            self.next_packs.insert(key, next);
            joined.runs += members.len() as u64;
            for member in &members {
                self.take_place(&member.occurrence);
            }
            match failed {
                Some(Failure { runs, error }) if error.is_of_one_row() => {
                    alone.extend(runs.into_iter().map(|run| (run, true)));
                }
                failed => joined.failed.extend(failed),
            }
        }
        alone
    }

    fn take_place(&mut self, run: &Occurrence) {
        let Some(policy) = &run.terms.policy else { return };
        if let Some(Some(places)) = self.ready.get_mut(&(run.client.clone(), policy.clone())) {
            *places = places.saturating_sub(1);
        }
    }
}

/// The single events of a round that fit into their line, by their kind of pack; and those that do not.
fn packs_in(round: Round) -> (Kinds, Round) {
    let (mut packs, mut others) = (Kinds::new(), Round::new());
    for (run, fits) in round {
        let kind = SinglesKind::of(&run.occurrence).filter(|_| fits);
        match (kind, run.occurrence.terms.policy.clone()) {
            (Some(kind), Some(policy)) => {
                let line = (run.occurrence.client.clone(), policy);
                packs.entry((line, kind)).or_default().push(run);
            }
            _ => others.push((run, fits)),
        }
    }
    (packs, others)
}

fn is_in(packs: &[Singles], run: &Joining) -> bool {
    packs.iter().any(|pack| pack.has(&run.occurrence))
}

impl Throttle {
    /// Takes out single events that are in packs. Those of packs that cannot be read are packed anew.
    async fn not_packed(
        &self,
        lines: BTreeMap<LineKey, Vec<Joining>>,
        joined: &mut Joined,
    ) -> BTreeMap<LineKey, Vec<Joining>> {
        let mut left = BTreeMap::new();
        for ((client, policy), mut runs) in lines {
            let kinds: BTreeSet<SinglesKind> =
                runs.iter().filter_map(|run| SinglesKind::of(&run.occurrence)).collect();
            let mut unknown = Vec::with_capacity(kinds.len());
            for kind in kinds {
                let line = (&client, &policy, kind);
                unknown.push((kind, self.memory.leave_packed(line, &mut runs, |run| &run.occurrence)));
            }
            let read = |(kind, from)| self.store.readable_packs_of(&client, &policy, kind, from);
            let reads = unknown.into_iter().map(read);
            match stream::iter(reads.collect::<Vec<_>>())
                .buffered(WRITES_AT_ONCE)
                .try_collect::<Vec<_>>()
                .await
            {
                Ok(packs) => {
                    for packs in packs {
                        runs.retain(|run| !is_in(&packs, run));
                        self.memory.keep_pack_log(&client, &policy, &packs);
                    }
                    left.insert((client, policy), runs);
                }
                Err(error) => joined.failed.push(Failure { runs, error: error.into() }),
            }
        }
        left.retain(|_, runs| !runs.is_empty());
        left
    }

    /// Appends single events of one kind to the packs of their line, those that are in none yet.
    async fn append_packs(
        &self,
        ((client, policy), kind): &PackKey,
        next: u32,
        as_of: Option<DateTime<Utc>>,
        mut members: Vec<Joining>,
    ) -> Packed {
        let order =
            |run: &Joining| (run.occurrence.launch_at, run.occurrence.job.clone(), run.occurrence.revision);
        members.sort_by_key(order);
        let known = self.memory.leave_packed((client, policy, *kind), &mut members, |run| &run.occurrence);
        // None of them is in a pack below `known`. Those in packs from there on are taken out as these are read.
        let (mut packed, mut next, mut known) = (Packed::default(), known.max(next), known);
        let whose = || format!("client {client}, policy {policy}");
        // Each round writes a pack, or reads those that others wrote meanwhile.
        for _ in 0..members.len().saturating_mul(2).saturating_add(WRITE_ROUNDS as usize) {
            let count = packs::fitting(members.iter().map(|run| &run.occurrence));
            if count == 0 {
                break;
            }
            let first = members.iter().take(count).map(|run| run.occurrence.clone()).collect();
            let pack = Singles { id: kind.number(next), as_of, straight: None, members: first };
            let written = contain(whose, async {
                deadline::check(&*self.clock)?;
                if self.store.append_pack(client, policy, &pack, self.clock.now()).await? == Create::Done {
                    return Ok(None);
                }
                Ok(Some(self.store.packs_of(client, policy, *kind, known).await?))
            });
            match written.await.map_err(EngineError::from).flatten() {
                Ok(None) => {
                    let rest = members.split_off(count);
                    packed.joined.extend(std::mem::replace(&mut members, rest));
                    self.memory.keep_pack_log(client, policy, std::slice::from_ref(&pack));
                    next = next.saturating_add(1);
                }
                Ok(Some(others)) => {
                    self.memory.keep_pack_log(client, policy, &others);
                    next = others.last().map_or(next, |last| last.id.number.saturating_add(1));
                    known = next;
                    members.retain(|run| !is_in(&others, run));
                }
                Err(error) => {
                    packed.failed = Some(Failure { runs: std::mem::take(&mut members), error });
                }
            }
        }
        Packed { next, ..packed }
    }

    /// Puts the policy of a line on the list of those that each tick looks after, and counts how many more runs it takes.
    async fn make_line_ready(&self, (client, policy): LineKey) -> (LineKey, Result<Places, EngineError>) {
        let places = async {
            deadline::check(&*self.clock)?;
            self.store.touch_active(&client, &policy, self.clock.now()).await?;
            self.free_places(&client, &policy).await
        };
        let places = places.await;
        ((client, policy), places)
    }

    /// How many more runs the line of a policy takes; `None` for any number.
    async fn free_places(&self, client: &ClientId, policy: &PolicyId) -> Result<Option<u32>, EngineError> {
        let snapshot = self.snapshot(client, policy, 0).await?;
        let Some(most) = snapshot.and_then(|snapshot| snapshot.max_waiting_runs) else { return Ok(None) };
        let (mut waiting, mut after) = (WaitingRuns::default(), None);
        while waiting.count() < most {
            let page = self.store.line(client, policy, after).await?;
            page.rows.iter().for_each(|entry| waiting.add(entry));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        Ok(Some(most.saturating_sub(waiting.count())))
    }

    /// Writes an occurrence into its line. One that does not fit is skipped, and that is recorded.
    async fn join_line(&self, run: Joining, fits: bool) -> (Joining, Result<Place, EngineError>) {
        let Joining { occurrence, .. } = &run;
        let (store, now) = (&self.store, self.clock.now());
        let whose = || format!("client {}, job {}", occurrence.client, occurrence.job);
        let written = contain(whose, async {
            deadline::check(&*self.clock)?;
            let (written, place) = match &occurrence.terms.policy {
                Some(policy) if fits => {
                    let parts = self.parts_of(occurrence).await?;
                    (store.enqueue_run(occurrence, (policy, parts), now).await?, Place::Taken)
                }
                _ => {
                    let reason = SkipReason::LineFull.as_str();
                    (store.record_skip(occurrence, reason, now).await?, Place::Full)
                }
            };
            Ok(if written == Create::Done { place } else { Place::Exists })
        });
        let written = written.await.map_err(EngineError::from).flatten();
        (run, written)
    }
}
