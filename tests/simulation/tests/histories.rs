//! Seeded histories hold, and a seed gives the same one each time.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use tidegate_simulation::sim;

fn hold(seeds: std::ops::Range<u64>) {
    let mut delivered = 0;
    for seed in seeds {
        match sim::run(seed).unwrap() {
            Ok(summary) => delivered += summary.delivered,
            Err(failure) => panic!("{failure}"),
        }
    }
    assert!(delivered > 0);
}

#[test]
fn a_seed_gives_the_same_history_each_time() {
    for seed in 1..3 {
        assert_eq!(sim::run(seed).unwrap().unwrap(), sim::run(seed).unwrap().unwrap());
    }
}

// A seed takes seconds unoptimised: the test command has a few, `cargo xtask simulate N` as many as are asked for.

#[test]
fn histories_1_to_6() {
    hold(1..7);
}

#[test]
fn histories_7_to_12() {
    hold(7..13);
}
