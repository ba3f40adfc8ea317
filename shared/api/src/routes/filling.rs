//! Filling a page from a list of which not all is asked for.

use tidegate_domain::bounded::PageRows;
use tidegate_store::{Page, PageOf};

/// Rows that are looked at for one page of those that are asked for.
const LOOKED_AT: u32 = 1_000;

/// A page that is being filled. Whoever fills it reads what [`Self::next`] says and adds it, until it is done.
pub(super) struct Filling<T> {
    found: Page<T>,
    most: usize,
    looked_at: u32,
    /// Whether all of the list is asked for: then no more rows are read than are missing.
    has_all: bool,
    /// Whether the list goes from the greatest sort key to the least.
    is_descending: bool,
}

impl<T> Filling<T> {
    pub(super) fn ascending(asked: PageOf, has_all: bool) -> Self {
        let (most, found) = (asked.rows.get().into(), Page::new(Vec::new(), asked.after));
        Self { found, most, looked_at: 0, has_all, is_descending: false }
    }

    pub(super) fn descending(asked: PageOf, has_all: bool) -> Self {
        Self { is_descending: true, ..Self::ascending(asked, has_all) }
    }

    /// What is to be read next.
    pub(super) fn next(&mut self) -> PageOf {
        let missing = self.most.saturating_sub(self.found.rows.len()) as u64;
        let rows = if self.has_all { PageRows::new(missing).unwrap_or_default() } else { PageRows::DEFAULT };
        self.looked_at = self.looked_at.saturating_add(rows.get().into());
        PageOf { after: self.found.next.take(), rows }
    }

    /// Adds what is asked for of a page that was read, where `place` is the sort key of a row. `true`: this was enough.
    pub(super) fn is_done_with(&mut self, page: Page<T>, place: impl Fn(&T) -> String) -> bool {
        self.found.rows.extend(page.rows);
        self.found.unreadable.extend(page.unreadable);
        self.found.next = page.next;
        if self.found.rows.len() > self.most {
            self.found.rows.truncate(self.most);
            let last = self.found.rows.last().map(place);
            // What lies behind it comes with the next page.
            let is_descending = self.is_descending;
            self.found.unreadable.retain(|row| match &last {
                Some(last) if is_descending => row.sort_key > *last,
                Some(last) => row.sort_key < *last,
                None => true,
            });
            self.found.next = last;
        }
        self.found.next.is_none() || self.found.rows.len() >= self.most || self.looked_at >= LOOKED_AT
    }

    /// What was found, and where to go on.
    pub(super) fn into_page(self) -> Page<T> {
        self.found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(list: &[u32], page: &PageOf) -> Page<u32> {
        let from = page
            .after
            .as_ref()
            .map_or(0, |after| list.iter().position(|n| n.to_string() == *after).unwrap() + 1);
        let to = list.len().min(from + usize::from(page.rows.get()));
        let next = (to < list.len()).then(|| list[to - 1].to_string());
        Page::new(list[from..to].to_vec(), next)
    }

    /// Reads a list to its end: its pages, and how many rows were looked at for each.
    fn pages(
        list: &[u32],
        most: u64,
        has_all: bool,
        is_wanted: impl Fn(&u32) -> bool,
    ) -> Vec<(Vec<u32>, u32)> {
        let (mut pages, mut after) = (Vec::new(), None);
        loop {
            let asked = PageOf { after, rows: PageRows::new(most).unwrap() };
            let mut filling = Filling::ascending(asked, has_all);
            loop {
                let page = filling.next();
                let mut page = read(list, &page);
                page.rows.retain(&is_wanted);
                if filling.is_done_with(page, ToString::to_string) {
                    break;
                }
            }
            let looked_at = filling.looked_at;
            let page = filling.into_page();
            after = page.next;
            pages.push((page.rows, looked_at));
            if after.is_none() {
                return pages;
            }
        }
    }

    #[test]
    fn a_page_has_what_is_asked_for_and_the_next_goes_on_behind_it() {
        let list: Vec<u32> = (1000..3500).collect();
        let found = pages(&list, 3, false, |n| n % 50 == 0);
        assert_eq!(found[0].0, [1000, 1050, 1100]);
        let all: Vec<u32> = found.iter().flat_map(|(rows, _)| rows).copied().collect();
        assert_eq!(all, (1000..3500).step_by(50).collect::<Vec<_>>());
        // Of a list in which little is asked for a page ends all the same.
        let rare = pages(&list, 3, false, |n| *n == 3499);
        assert_eq!(rare.iter().map(|(rows, _)| rows.len()).collect::<Vec<_>>(), [0, 0, 1]);
        assert!(rare.iter().all(|(_, looked_at)| *looked_at <= LOOKED_AT));
        // Of one of which all is, no more is read than is shown.
        assert!(
            pages(&list, 7, true, |_| true)
                .iter()
                .all(|(rows, looked_at)| rows.len() <= 7 && *looked_at == 7)
        );
    }
}
