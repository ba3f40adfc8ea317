//! The table of mutants is whole, and histories fail without a clause. `cargo xtask simulate 500 --mutants` plays all of
//! them.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use tidegate_simulation::mutants::{Fate, Mutant};
use tidegate_simulation::sim::{self, Options};

/// Histories whose clauses are compared with the table.
const COUNTED: RangeInclusive<u64> = 1..=25;
/// How many seeds may pass before a mutant is noticed that any history notices.
const NOTICED_WITHIN: u64 = 100;

/// A condition that is not in the table was never taken off: add a row to `mutants.txt`, and see what notices it.
#[test]
fn each_clause_of_a_condition_is_in_the_table() {
    let (mut seen, options) = (BTreeSet::new(), Options { counts_clauses: true, ..Options::default() });
    for seed in COUNTED {
        let summary =
            sim::run_with(seed, options).unwrap().held().unwrap_or_else(|failure| panic!("{failure}"));
        seen.extend(summary.clauses.into_keys());
    }
    let known: BTreeSet<String> = Mutant::all().iter().map(|mutant| mutant.name.clone()).collect();
    let missing: Vec<_> = seen.difference(&known).collect();
    assert!(missing.is_empty(), "not in the table: {missing:#?}");
    let is_stale = |mutant: &&Mutant| {
        matches!(mutant.fate, Fate::Seed(seed) if COUNTED.contains(&seed)) && !seen.contains(&mutant.name)
    };
    let stale: Vec<_> = Mutant::all().iter().filter(is_stale).map(|mutant| &mutant.name).collect();
    assert!(stale.is_empty(), "no write has these clauses any more: {stale:#?}");
}

#[test]
fn each_row_of_the_table_has_a_name_of_its_own_and_a_reason() {
    let mut names = BTreeSet::new();
    for Mutant { name, fate } in Mutant::all() {
        assert!(names.insert(name), "{name} stands twice in the table");
        assert!(
            !matches!(fate, Fate::Survives(reason) if reason.len() < 20),
            "{name} survives without a reason"
        );
    }
}

/// Plays the histories of a mutant until one fails, beginning with the one that failed when the table was made.
fn is_noticed(name: &str) {
    let mutant = Mutant::named(name).unwrap();
    let options = Options { mutant: Some(mutant), ..Options::default() };
    let known = if let Fate::Seed(seed) = mutant.fate { Some(seed) } else { None };
    // A row that cannot be read any more fails its history too.
    let failure = |seed| sim::run_all(seed..seed + 1, options, |_| {}).failures.pop();
    let failure = known.into_iter().chain(1..=NOTICED_WITHIN).find_map(failure);
    let Some(failure) = failure else { panic!("{name} passes for right in {NOTICED_WITHIN} histories") };
    println!("{name} is noticed by seed {}: {:?}", failure.seed, failure.violation);
}

#[test]
fn a_release_of_another_lease_is_noticed() {
    is_noticed("slots hand off: f# = :v");
}

#[test]
fn a_token_over_a_lowered_limit_is_noticed() {
    is_noticed("slots hand off: held <= cap");
}

#[test]
fn a_cursor_that_moves_back_is_noticed() {
    is_noticed("line take range: cur <= :most");
}

#[test]
fn a_launch_in_the_place_of_a_void_one_is_noticed() {
    is_noticed("at put: attribute_not_exists(pk)");
}

#[test]
fn outcomes_that_count_twice_are_noticed() {
    is_noticed("run add outcomes: attribute_not_exists(q#) OR q# < :flush");
}
