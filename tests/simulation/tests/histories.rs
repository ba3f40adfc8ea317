//! Seeded histories hold (120 fixed ones, and every seed that ever failed), a seed gives the same one each time, and every
//! fault occurs in them. That they fail without a condition is shown in `mutants.rs`.

use std::ops::Range;

use tidegate_simulation::sim::{self, CoveredFault, FaultCoverage};

/// Plays the histories of seeds; what went wrong in them.
fn hold(seeds: Range<u64>) -> FaultCoverage {
    let (mut delivered, mut coverage) = (0, FaultCoverage::new());
    for seed in seeds {
        let summary = sim::run(seed).unwrap().held().unwrap_or_else(|failure| panic!("{failure}"));
        delivered += summary.delivered;
        for (fault, count) in summary.coverage {
            *coverage.entry(fault).or_default() += count;
        }
    }
    assert!(delivered > 0);
    coverage
}

// Apart, so that they are spread over all cores.

#[test]
fn histories_1_to_60_hold() {
    hold(1..61);
}

/// See the file's head.
#[test]
fn seeds_that_failed_once() {
    let lines = include_str!("seeds.txt").lines().filter(|line| !line.starts_with('#'));
    for line in lines {
        let seed = line.split_whitespace().next().unwrap().parse().unwrap();
        sim::run(seed).unwrap().held().unwrap_or_else(|failure| panic!("{failure}\nformerly: {line}"));
    }
}

#[test]
fn a_seed_gives_the_same_history_each_time() {
    for seed in 1..4 {
        let played = || sim::run(seed).unwrap().held().unwrap();
        assert_eq!(played(), played());
    }
}

/// A simulator whose faults never happen proves nothing.
#[test]
fn histories_61_to_120_hold_and_every_fault_occurs() {
    let coverage = hold(61..121);
    let missing: Vec<&str> = CoveredFault::ALL
        .iter()
        .filter(|fault| !coverage.contains_key(fault))
        .map(|fault| fault.name())
        .collect();
    assert!(missing.is_empty(), "in sixty histories there were no {missing:?}");
}
