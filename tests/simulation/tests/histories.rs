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
    for seed in 1..4 {
        assert_eq!(sim::run(seed).unwrap().unwrap(), sim::run(seed).unwrap().unwrap());
    }
}

#[test]
fn histories_1_to_25() {
    hold(1..26);
}

#[test]
fn histories_26_to_50() {
    hold(26..51);
}

#[test]
fn histories_51_to_75() {
    hold(51..76);
}

#[test]
fn histories_76_to_100() {
    hold(76..101);
}
