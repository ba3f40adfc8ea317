//! Transactions that are under way: who else wants to write one of their items is refused.

use std::collections::HashSet;

use tidegate_testkit::ItemKey;

/// The items that transactions hold.
#[derive(Debug, Default)]
pub(crate) struct Conflicts {
    held: HashSet<ItemKey>,
    pub(crate) refused: u64,
}

impl Conflicts {
    /// Whether a transaction holds an item of these, for each; none is counted when none does.
    pub(crate) fn among(&mut self, keys: &[ItemKey]) -> Option<Vec<bool>> {
        let held: Vec<bool> = keys.iter().map(|key| self.held.contains(key)).collect();
        if !held.contains(&true) {
            return None;
        }
        self.refused += 1;
        Some(held)
    }

    pub(crate) fn hold(&mut self, keys: &[ItemKey]) {
        self.held.extend(keys.iter().cloned());
    }

    pub(crate) fn let_go(&mut self, keys: &[ItemKey]) {
        for key in keys {
            self.held.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_wants_an_item_of_a_transaction_is_refused_until_it_is_over() {
        let key =
            |sort: &str| ItemKey { table: "t".to_owned(), partition: "p".to_owned(), sort: sort.to_owned() };
        let mut conflicts = Conflicts::default();
        conflicts.hold(&[key("a"), key("b")]);
        assert_eq!(conflicts.among(&[key("c"), key("b")]), Some(vec![false, true]));
        assert_eq!(conflicts.among(&[key("c")]), None);
        conflicts.let_go(&[key("a"), key("b")]);
        assert_eq!(conflicts.among(&[key("a"), key("b")]), None);
        assert_eq!(conflicts.refused, 1);
    }
}
