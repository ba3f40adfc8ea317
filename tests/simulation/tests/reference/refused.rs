//! What the API refuses, by id, with a part of its reason.

use std::collections::{BTreeMap, BTreeSet};

use crate::data::Schedule;

/// Single schedules.
const SINGLE: [(&str, &str); 14] = [
    ("s0027", "'60' is outside 0-59"),
    ("s0123", "'A' is not a number"),
    ("s0133", "Jenkins"),
    ("s0214", "extra comma"),
    ("s0266", "'60' is outside 0-59"),
    ("s0288", "Jenkins"),
    ("s0301", "is an interval"),
    ("s0361", "'99' is outside 0-59"),
    ("s0444", "'R/5' is not a number"),
    ("s0510", "Jenkins"),
    ("s0593", "never fires"),
    ("s0664", "Jenkins"),
    ("s0666", "never fires"),
    ("s0705", "Jenkins"),
];

/// Dialects that are not taken yet: the reason, and the ids.
const DIALECTS: [(&str, &str, &[&str]); 4] = [
    (
        "aws6",
        "cron expression '",
        &[
            "s0006", "s0043", "s0047", "s0065", "s0073", "s0076", "s0102", "s0186", "s0276", "s0285",
            "s0291", "s0298", "s0309", "s0340", "s0354", "s0356", "s0411", "s0513", "s0526", "s0532",
            "s0538", "s0552", "s0554", "s0561", "s0597", "s0610", "s0725", "s0769", "s0781",
        ],
    ),
    (
        "quartz6",
        "has 6 fields instead of 5: the first one",
        &[
            "s0046", "s0062", "s0100", "s0101", "s0149", "s0169", "s0188", "s0197", "s0236", "s0370",
            "s0388", "s0450", "s0764", "s0776", "s0777", "s0792",
        ],
    ),
    ("quartz7", "has 7 fields instead of 5", &["s0733", "s0797"]),
    (
        "seconds6",
        "has 6 fields instead of 5: the first one",
        &[
            "s0014", "s0061", "s0066", "s0075", "s0145", "s0146", "s0151", "s0153", "s0175", "s0182",
            "s0224", "s0250", "s0256", "s0289", "s0313", "s0334", "s0349", "s0423", "s0460", "s0475",
            "s0494", "s0506", "s0555", "s0604", "s0628", "s0673", "s0738", "s0739", "s0755",
        ],
    ),
];

/// Holds the refusals against the list.
pub fn check(name: &str, schedules: &[Schedule], refused: &BTreeMap<String, String>) {
    if name != "public" {
        assert!(refused.is_empty(), "{refused:?}");
        return;
    }
    let mut expected: BTreeMap<&str, &str> = SINGLE.into_iter().collect();
    for (dialect, reason, ids) in DIALECTS {
        let of_dialect = schedules.iter().filter(|schedule| schedule.dialect == dialect);
        assert_eq!(
            of_dialect.map(|schedule| &*schedule.id).collect::<BTreeSet<_>>(),
            ids.iter().copied().collect()
        );
        expected.extend(ids.iter().map(|id| (*id, reason)));
    }
    assert_eq!(
        refused.keys().map(String::as_str).collect::<Vec<_>>(),
        expected.keys().copied().collect::<Vec<_>>()
    );
    for (id, reason) in expected {
        assert!(refused[id].contains(reason), "{id}: {}", refused[id]);
    }
}
