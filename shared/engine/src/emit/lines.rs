//! Throttled occurrences: they join the lines of their policies. Occurrences go in, rows of the line come out, many writes
//! under way at once.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use futures::stream::{self, StreamExt};
use tidegate_domain::ids::{ClientId, PolicyId};
use tidegate_domain::occurrence::{NonRun, Occurrence};
use tidegate_store::Create;

use super::{RowKey, WRITES_AT_ONCE};
use crate::{Engine, EngineError, contain};

type LineKey = (ClientId, PolicyId);

/// How many more runs a line takes; `None` for any number.
type Places = Option<u32>;

/// The lines that were joined.
#[derive(Default)]
pub(super) struct Lines {
    /// Lines that are ready to be joined: their policies are on the list of active ones. Their runs were counted once, and
    /// then what is added here: those whom others add at the same time come on top of a bound.
    ready: BTreeMap<LineKey, Places>,
    wakes: BTreeSet<(DateTime<Utc>, ClientId, PolicyId)>,
}

/// An occurrence that joins its line, with the row of the index that it follows from.
pub(super) struct Joining {
    pub(super) row: Option<RowKey>,
    pub(super) occurrence: Occurrence,
}

/// What came of it.
#[derive(Default)]
pub(super) struct Joined {
    pub(super) runs: u64,
    /// Occurrences that were left out, since their line is full.
    pub(super) line_full: u64,
    pub(super) failed: Vec<Failure>,
}

/// Occurrences that did not get into a row, for one reason.
pub(super) struct Failure {
    pub(super) runs: Vec<Joining>,
    pub(super) error: EngineError,
}

/// What came of one occurrence.
enum Place {
    Taken,
    Exists,
    Full,
}

impl Lines {
    /// Writes occurrences, all of which have a policy, into the lines of their policies. Repeating it changes nothing.
    pub(super) async fn join(&mut self, engine: &Engine, joining: Vec<Joining>) -> Joined {
        let mut lines: BTreeMap<LineKey, Vec<Joining>> = BTreeMap::new();
        for run in joining {
            let Some(policy) = run.occurrence.terms.policy.clone() else { continue };
            let Occurrence { client, launch_at, .. } = &run.occurrence;
            self.wakes.insert((*launch_at, client.clone(), policy.clone()));
            lines.entry((client.clone(), policy)).or_default().push(run);
        }
        let mut joined = Joined::default();
        self.make_ready(engine, &mut lines, &mut joined).await;
        while !lines.is_empty() {
            let round = self.next_round(&mut lines);
            let writes: Vec<_> = round.into_iter().map(|(run, fits)| engine.join_line(run, fits)).collect();
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
        joined
    }

    /// Which policies something joined since the last call, and when it is due.
    pub(super) fn take_wakes(&mut self) -> BTreeSet<(DateTime<Utc>, ClientId, PolicyId)> {
        std::mem::take(&mut self.wakes)
    }

    /// Makes the lines ready that were not joined before. Those that cannot be are taken out.
    async fn make_ready(
        &mut self,
        engine: &Engine,
        lines: &mut BTreeMap<LineKey, Vec<Joining>>,
        joined: &mut Joined,
    ) {
        let new: Vec<LineKey> = lines.keys().filter(|key| !self.ready.contains_key(*key)).cloned().collect();
        let ready: Vec<_> = new.into_iter().map(|key| engine.make_line_ready(key)).collect();
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

    /// Takes out of each line as many runs as it has places, or all that are left when it has none: they are left out.
    fn next_round(&self, lines: &mut BTreeMap<LineKey, Vec<Joining>>) -> Vec<(Joining, bool)> {
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

    fn take_place(&mut self, run: &Occurrence) {
        let Some(policy) = &run.terms.policy else { return };
        if let Some(Some(places)) = self.ready.get_mut(&(run.client.clone(), policy.clone())) {
            *places = places.saturating_sub(1);
        }
    }
}

impl Engine {
    /// Puts the policy of a line on the list of those that each tick looks after, and counts how many more runs it takes.
    async fn make_line_ready(&self, (client, policy): LineKey) -> (LineKey, Result<Places, EngineError>) {
        let places = async {
            self.store().touch_active(&client, &policy, self.now()).await?;
            self.free_places(&client, &policy).await
        };
        let places = places.await;
        ((client, policy), places)
    }

    /// Writes an occurrence into its line. One that does not fit is left out, and that is recorded.
    async fn join_line(&self, run: Joining, fits: bool) -> (Joining, Result<Place, EngineError>) {
        let Joining { occurrence, .. } = &run;
        let (store, now) = (self.store(), self.now());
        let whose = || format!("client {}, job {}", occurrence.client, occurrence.job);
        let written = contain(whose, async {
            let (written, place) = match &occurrence.terms.policy {
                Some(policy) if fits => (store.enqueue_run(occurrence, policy, now).await?, Place::Taken),
                _ => {
                    let reason = NonRun::LineFull.as_str();
                    (store.record_non_run(occurrence, reason, now).await?, Place::Full)
                }
            };
            Ok(if written == Create::Done { place } else { Place::Exists })
        });
        let written = written.await.map_err(EngineError::from).flatten();
        (run, written)
    }
}
