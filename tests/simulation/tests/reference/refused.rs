//! What the API refuses: the schedules of `tests/data/refused_public.jsonl`, each with the part of its reason that stands there.

use std::collections::BTreeMap;

use super::data;

/// Holds the refusals, by id, against the list.
pub fn check(name: &str, refused: &BTreeMap<String, String>) {
    if name != "public" {
        assert!(refused.is_empty(), "{refused:?}");
        return;
    }
    let expected = data::refused();
    assert_eq!(refused.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>(), "{refused:?}");
    for (id, reason) in expected {
        assert!(refused[&id].contains(&reason), "{id}: {}", refused[&id]);
    }
}
