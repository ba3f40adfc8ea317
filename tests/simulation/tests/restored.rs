//! Tables that are restored from snapshots seconds apart, and repaired: the invariants hold again. Without the repair they do
//! not.

use std::ops::Range;

use tidegate_simulation::restore::{self, Options};

fn hold(seeds: Range<u64>) {
    for seed in seeds {
        let played = restore::play(seed, Options::default());
        played.unwrap_or_else(|error| panic!("restore {seed}: {error:#}"));
    }
}

#[test]
fn restores_1_to_4() {
    hold(1..5);
}

#[test]
fn restores_5_to_8() {
    hold(5..9);
}

/// Fresh seeds: `RESTORES=1000..1300`.
#[test]
#[ignore = "plays the seeds that RESTORES names"]
fn restores_that_are_asked_for() {
    let asked = std::env::var("RESTORES").expect("RESTORES should name the seeds, as 1000..1300 does");
    let (from, to) = asked.split_once("..").unwrap();
    let (mut failed, seeds) = (Vec::new(), from.parse::<u64>().unwrap()..to.parse().unwrap());
    for seed in seeds {
        if let Err(error) = restore::play(seed, Options::default()) {
            failed.push(format!("restore {seed}: {error:#}"));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// What the repair is for is seen when it is left out.
#[test]
fn without_a_repair_something_is_lost() {
    let options = Options { repairs: false, ..Options::default() };
    let lost = (1..11).filter(|seed| restore::play(*seed, options).is_err()).take(3).count();
    assert!(lost == 3, "only {lost} of 10 restores without a repair lost anything");
}
