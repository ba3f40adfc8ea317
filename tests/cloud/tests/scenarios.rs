//! Every scenario that has a short form, in it: what must hold on AWS as it is. `cargo xtask cloud` plays all of them, in full.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use tidegate_cloud::scenarios::play;

/// The part of its full size that each is played with.
const SHARE: f64 = 0.01;

fn holds(name: &str) {
    let report = play(name, 1, SHARE).unwrap();
    assert!(report.holds(), "{name}\n{report}");
}

macro_rules! scenarios {
    ($($test:ident = $name:literal;)*) => {$(
        #[test]
        fn $test() {
            holds($name);
        }
    )*

        #[test]
        fn none_is_left_out() {
            let names: Vec<_> = tidegate_cloud::scenarios::short().collect();
            assert_eq!(names, [$($name),*]);
        }
    };
}

scenarios! {
    herd = "herd";
    herd_in_a_new_account = "herd-new-account";
    many_policies = "policies";
    one_policy = "one-policy";
    many_events = "million";
    many_events_that_are_throttled = "million-throttled";
    short_jobs = "short-jobs";
    killed_anywhere = "killed";
    dynamodb_away_for_minutes = "dynamodb-away-15m";
    sqs_away_for_minutes = "sqs-away-15m";
    both_away_for_hours = "both-away-3h";
    taken_back = "upgrade";
    restored_and_repaired = "restored";
    poison = "poison";
    drawn_histories = "histories";
}
