//! What becomes of an entry, held against the diagram of it.

use states::{Edges, drawn};

use super::*;

#[path = "../../../../docs/states.rs"]
mod states;

/// The row of an entry, with its events up to `cursor` with slot groups.
fn row(cursor: u32, count: u32) -> Attributes {
    let key = Key::new("acme|small|line", "5|001790000000|nightly.3.1790000000");
    let row = Row::new(&key).with("pack", text("nightly.3.1790000000"));
    row.with("n", number(count)).with("cur", number(cursor)).into_attributes()
}

/// What the diagram calls the state of an entry; `None`: it has left the line.
fn state(row: Option<&Attributes>) -> &'static str {
    match row.map(read) {
        None => "[*]",
        // Whoever finds it in the line sets it aside.
        Some(Err(_)) => "set_aside",
        Some(Ok(entry)) if entry.is_exhausted() => "exhausted",
        Some(Ok(_)) => "open",
    }
}

/// Whether a condition that compares two attributes holds of a row.
fn holds(condition: &str, row: &Attributes) -> bool {
    let (one, other) = condition.split_once(" >= ").unwrap();
    let item = Item::new(Table::Policies, row);
    item.number::<u32>(one).unwrap() >= item.number::<u32>(other).unwrap()
}

/// What each step makes of an entry that is in the line; `None` within: it leaves the line.
fn steps(before: &Attributes) -> Vec<(&'static str, Option<Attributes>)> {
    let extent = extent(before).unwrap();
    let moved = |to: Extent| row(to.cursor, to.count);
    let mut steps = Vec::new();
    let parts = (1..=3).map(|cap| Portion::Part { cap, of: 4, least: cap, step: 1, behind: 0 });
    for portion in parts.chain((0..=3).map(Portion::Exactly)) {
        for upto in [0, 2, u32::MAX] {
            let taken = extent.after_take(portion, upto);
            steps.extend(taken.map(|to| ("take a range", Some(moved(to)))));
        }
    }
    steps.extend(extent.after_drop().map(|to| ("drop what is left", Some(moved(to)))));
    steps.extend(holds(EXHAUSTED, before).then_some(("remove", None)));
    let mut spoiled = before.clone();
    spoiled.remove("pack");
    steps.push(("set aside", Some(spoiled)));
    steps
}

#[test]
fn the_diagram_of_a_pack_shows_what_becomes_of_its_entry() {
    let mut made = Edges::new();
    for cursor in 0..=3 {
        let before = row(cursor, 3);
        for (step, after) in steps(&before) {
            let (from, to) = (state(Some(&before)), state(after.as_ref()));
            made.insert((from.to_owned(), to.to_owned(), step.to_owned()));
        }
    }
    assert_eq!(drawn("Pack in its line"), made);
}

#[test]
fn a_sidelined_event_rejoins_the_line_as_what_it_was_and_is_found_by_its_job_alone() {
    let (job, longer): (JobId, JobId) = ("a".parse().unwrap(), "a.b".parse().unwrap());
    let key = GroupKey { client: "acme".parse().unwrap(), policy: "small".parse().unwrap(), group: 3 };
    let at = |second: i64| DateTime::from_timestamp(second, 0).unwrap();
    let (pack, due_at): (PackId, _) = ("a.b.1.1790000000".parse().unwrap(), at(1_790_000_000));
    for (tries, since_s) in [
        (Tries { made: 1, failed: 0, since_s: 1_790_000_000 }, 1_790_000_600),
        (Tries { made: 3, failed: 2, since_s: 1_790_000_100 }, 1_790_000_100),
    ] {
        let lease = LeaseId { slot: 0, pack_number: 1, index: 7, fence: 17, cost: 1 };
        let held = Requeued { pack: pack.clone(), priority: 4, tries, due_at };
        let entry = read(&sidelined_row(&key, (&longer, lease), &held).into_attributes()).unwrap();
        assert_eq!(entry.sidelined_job(), Some(longer.clone()));
        assert!(entry.launch_at > at(4_000_000_000));
        assert_eq!((entry.cursor, entry.count, entry.tries()), (7, 8, Some(tries)));
        let is_found = |job: &JobId| entry.line_key.starts_with(&sidelined_prefix(job));
        assert_eq!((is_found(&longer), is_found(&job)), (true, false));
        let back = rejoining_row((&key.client, &key.policy), &entry, at(1_790_000_600)).unwrap();
        let back = read(&back.into_attributes()).unwrap();
        assert_eq!((back.rank(), back.launch_at, back.cursor), (Rank::of_all(4), at(1_790_000_600), 7));
        assert_eq!((&back.pack, back.sidelined_job()), (&pack, None));
        assert_eq!(tries_of_line_key(&back.line_key), Some(Tries { since_s, ..tries }));
    }
}

/// What is left of a range suffices for all slots of its group, or nothing is left.
#[test]
fn a_part_is_a_multiple_of_the_slots_unless_it_is_all() {
    let part = |step, left, behind| Portion::Part { cap: 10, of: 100, least: 10, step, behind }.of(left);
    assert_eq!([part(10, 464, 0), part(10, 434, 0), part(10, 9_999, 0)], [50, 40, 250]);
    assert_eq!([part(7, 9_999, 0), part(3, 464, 0)], [245, 48]);
    // Never less than the slots that are free, and all of what would leave a scrap.
    assert_eq!([part(10, 20, 0), part(4, 13, 900)], [10, 13]);
    assert_eq!(part(1, 464, 0), 47);
}
