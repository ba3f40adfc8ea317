//! I2, I3, I6: what the rows that a scan reads own is what croner says with our rules for the clocks, each launch once,
//! however the time line is cut.

use chrono::{DateTime, Duration, Utc};
use proptest::collection::vec;
use proptest::prelude::*;
use tidegate_domain::limits::MAX_CHILDREN;
use tidegate_domain::time::{Cadence, Firing, LocalWindow, Rate, Window};

use crate::oracle;
use crate::strategies::{config, length, place, spec};

/// Cases of random expressions, rules, zones, windows and cuts. Each is a comparison with croner second by second.
const CRON_CASES: u32 = 40_000;

proptest! {
    #![proptest_config(ProptestConfig { cases: CRON_CASES, ..config() })]

    #[test]
    fn eligible_children_share_out_what_croner_launches((zone, from) in place(), length in length(), spec in spec(), cuts in cuts()) {
        let cadence = Cadence::Cron { cron: *spec.compiled(), zone };
        let whole = Window::new(from, from + length).unwrap();
        let want = oracle::firings(&spec, zone, whole);
        let found = scanned(&cadence, whole, &cuts);
        prop_assert_eq!(&found, &want, "{} in {} ({:?}) by scans", spec.canonical(), zone, spec.dst());
        prop_assert_eq!(cadence.firings(whole), want, "{} in {} ({:?})", spec.canonical(), zone, spec.dst());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..config() })]

    /// The same for a beat, whose launches are the multiples of its interval.
    #[test]
    fn eligible_children_share_out_a_beat((_, from) in place(), length in length(), rate in rate(), cuts in cuts()) {
        let whole = Window::new(from, from + length).unwrap();
        let seconds = (from.timestamp()..=whole.to().timestamp()).filter_map(|second| DateTime::from_timestamp(second, 0));
        let beats = |at: &DateTime<Utc>| {
            let since = (*at - rate.anchor()).num_seconds();
            since >= 0 && since % i64::from(rate.every_seconds()) == 0
        };
        let want: Vec<_> = seconds.filter(|at| whole.contains(*at)).filter(beats).collect();
        let found = scanned(&Cadence::Rate(rate), whole, &cuts);
        prop_assert_eq!(found.iter().map(|firing| firing.launch_at).collect::<Vec<_>>(), want);
    }
}

/// What scans of the pieces of a window find: of each, the launches of the children whose rows it reads.
fn scanned(cadence: &Cadence, whole: Window, cuts: &[Cut]) -> Vec<Firing> {
    let zone = cadence.index_zone().unwrap();
    let children = cadence.children();
    assert!((1..=MAX_CHILDREN).contains(&children.len()), "{}", children.len());
    let mut found = Vec::new();
    for piece in pieces(whole, cuts) {
        let local = LocalWindow::new(zone, piece);
        let ranges = local.eligible();
        let mut owned = Vec::new();
        for child in &children {
            let rows = ranges.iter().filter(|range| range.covers(child)).count();
            assert!(rows <= 1, "{child} is read {rows} times in one scan");
            if rows == 1 {
                cadence.owned_firings_in(child, &local, &mut owned);
            }
        }
        owned.sort_unstable();
        found.append(&mut owned);
    }
    found
}

/// A place in a window, in thousandths of its length, and by how many milliseconds it is beside.
type Cut = (i64, i64);

/// None, a few anywhere, or some close together.
fn cuts() -> impl Strategy<Value = Vec<Cut>> {
    let whole_second = prop_oneof![2 => Just(0i64), 1 => -1_500i64..1_500];
    prop_oneof![
        1 => Just(Vec::new()),
        4 => vec((0i64..=1_000, whole_second), 1..4),
        1 => (0i64..=1_000, vec(-90_000i64..90_000, 2..8))
            .prop_map(|(place, beside)| beside.into_iter().map(|millis| (place, millis)).collect()),
    ]
}

fn pieces(whole: Window, cuts: &[Cut]) -> Vec<Window> {
    let length_ms = (whole.to() - whole.from()).num_milliseconds();
    let at = |(place, beside): &Cut| {
        let millis = (length_ms * place / 1_000 / 1_000 * 1_000 + beside).clamp(0, length_ms);
        whole.from() + Duration::milliseconds(millis)
    };
    let mut edges: Vec<_> = cuts.iter().map(at).chain([whole.from(), whole.to()]).collect();
    edges.sort_unstable();
    edges.windows(2).map(|edge| Window::new(edge[0], edge[1]).unwrap()).collect()
}

fn rate() -> impl Strategy<Value = Rate> {
    let every = prop_oneof![
        1u64..120,
        (1u64..90).prop_map(|minutes| minutes * 60),
        (1u64..50).prop_map(|hours| hours * 3_600),
        1u64..200_000,
    ];
    (every, 0i64..1_800_000_000).prop_map(|(every, anchor_s)| {
        Rate::new(every, DateTime::from_timestamp(anchor_s, 0).unwrap()).unwrap()
    })
}
