//! What the API refuses, by id, with a part of its reason.

use std::collections::BTreeMap;

/// Every schedule that is refused.
const REFUSED: [(&str, &str); 20] = [
    ("s0027", "'60' is outside 0-59"),
    ("s0047", "'SUN' in the year's place"),
    ("s0102", "AWS has 6"),
    ("s0123", "'A' is not a number"),
    ("s0133", "Jenkins"),
    ("s0214", "extra comma"),
    ("s0266", "'60' is outside 0-59"),
    ("s0288", "Jenkins"),
    ("s0356", "write 'cron(0 0,6,12,18 * * ? *)'"),
    ("s0361", "'99' is outside 0-59"),
    ("s0444", "'R/5' is not a number"),
    // A fixed offset in the place of its zone.
    ("s0475", "'Etc/GMT-3'"),
    ("s0510", "Jenkins"),
    ("s0532", "AWS has 6"),
    ("s0538", "AWS has 6"),
    ("s0554", "write 'rate(5 minutes)'"),
    ("s0593", "never fires"),
    ("s0664", "Jenkins"),
    ("s0666", "never fires"),
    ("s0705", "Jenkins"),
];

/// Holds the refusals against the list.
pub fn check(name: &str, refused: &BTreeMap<String, String>) {
    if name != "public" {
        assert!(refused.is_empty(), "{refused:?}");
        return;
    }
    let expected: BTreeMap<&str, &str> = REFUSED.into_iter().collect();
    assert_eq!(
        refused.keys().map(String::as_str).collect::<Vec<_>>(),
        expected.keys().copied().collect::<Vec<_>>(),
        "{refused:?}"
    );
    for (id, reason) in expected {
        assert!(refused[id].contains(reason), "{id}: {}", refused[id]);
    }
}
