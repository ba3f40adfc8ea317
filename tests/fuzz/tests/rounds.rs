//! The inputs of the normal test run, spread over as many tests as [`TESTS`] says.
//!
//! `TIDEGATE_FUZZ_SEED` is another first seed, `TIDEGATE_FUZZ_INPUTS` another number of inputs.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "a test fails by panicking")]

use tidegate_fuzz::numbers::{INPUTS, INPUTS_PER_ROUND, TESTS};
use tidegate_fuzz::round::{self, Played};

fn number(name: &str, otherwise: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|e| panic!("{name} is '{text}': {e}")),
        Err(_) => otherwise,
    }
}

/// Plays every round whose turn is this test's.
fn hold(test: u64) {
    let first = number("TIDEGATE_FUZZ_SEED", 1);
    let rounds = number("TIDEGATE_FUZZ_INPUTS", INPUTS).div_ceil(INPUTS_PER_ROUND);
    for seed in (first..first + rounds).skip(test as usize).step_by(TESTS as usize) {
        println!(
            "seed {seed}: should the process die, {} holds the input",
            round::journal_of(seed).display()
        );
        match round::play(seed).unwrap() {
            Played::Held(summary) => println!("{summary:?}"),
            Played::Failed(failure) => panic!("{failure}"),
        }
    }
}

macro_rules! rounds {
    ($($name:ident $test:literal)*) => {
        $(
            #[test]
            fn $name() {
                hold($test);
            }
        )*

        #[test]
        fn every_round_has_its_test() {
            assert_eq!([$($test),*].into_iter().collect::<Vec<u64>>(), (0..TESTS).collect::<Vec<u64>>());
        }
    };
}

rounds! {
    inputs_of_turn_00 0
    inputs_of_turn_01 1
    inputs_of_turn_02 2
    inputs_of_turn_03 3
    inputs_of_turn_04 4
    inputs_of_turn_05 5
    inputs_of_turn_06 6
    inputs_of_turn_07 7
    inputs_of_turn_08 8
    inputs_of_turn_09 9
    inputs_of_turn_10 10
    inputs_of_turn_11 11
    inputs_of_turn_12 12
    inputs_of_turn_13 13
    inputs_of_turn_14 14
    inputs_of_turn_15 15
    inputs_of_turn_16 16
    inputs_of_turn_17 17
    inputs_of_turn_18 18
    inputs_of_turn_19 19
}
