//! Plays every mutant until a history fails: how the rows of `mutants.txt` are found.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use super::{Fate, Mutant};
use crate::sim::{Options, over_all_cores, play};

/// Plays the histories of `seeds` with every mutant that no case of `tests/refusals` has, each until one fails, and tells
/// `on_row` what came of it. A history in which a clause decides nothing is the same without it, and is not played.
pub fn sweep(seeds: Range<u64>, on_row: impl Fn(String) + Sync) {
    let decided = decided(seeds);
    let known: BTreeSet<&str> = Mutant::all().iter().map(|mutant| &*mutant.name).collect();
    for (clause, _) in decided.iter().filter(|(clause, _)| !known.contains(&***clause)) {
        on_row(format!("{clause} | missing in the table"));
    }
    let played = Mutant::all().iter().filter(|mutant| mutant.fate != Fate::Refusal);
    let mut played: Vec<_> =
        played.map(|mutant| (mutant, decided.get(&mutant.name).cloned().unwrap_or_default())).collect();
    // What can be noticed soon is played first.
    played.sort_by_key(|(_, seeds)| seeds.len());
    over_all_cores(played.into_iter(), |(mutant, seeds)| {
        let options = Options { lines: 0, mutant: Some(mutant), ..Options::default() };
        on_row(match seeds.iter().find_map(|seed| play(*seed, options).err()) {
            Some(failure) => format!("{} | seed {} ({})", mutant.name, failure.seed, failure.violation.kind),
            None => format!("{} | unnoticed, decides in {} histories", mutant.name, seeds.len()),
        });
    });
}

/// In which histories each clause decides. One that is only seen has none.
fn decided(seeds: Range<u64>) -> BTreeMap<String, BTreeSet<u64>> {
    let decided: Mutex<BTreeMap<String, BTreeSet<u64>>> = Mutex::default();
    let options = Options { lines: 0, counts_clauses: true, ..Options::default() };
    over_all_cores(seeds, |seed| {
        let Ok(summary) = play(seed, options) else { return };
        let mut decided = decided.lock().unwrap_or_else(PoisonError::into_inner);
        for (clause, seen) in summary.clauses {
            decided.entry(clause).or_default().extend((seen.decided > 0).then_some(seed));
        }
    });
    decided.into_inner().unwrap_or_else(PoisonError::into_inner)
}
