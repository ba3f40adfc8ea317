//! A dry run over the real schedules agrees with the brute-force reference in `tests/data`.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::PathBuf;

use flate2::read::GzDecoder;
use serde_json::Value;

use crate::process::{lines, run};

/// Clocks go forward in Europe and back in Australia and New Zealand.
const SPRING: (&str, &str) = ("2026-03-27", "2026-04-07");
/// Clocks go back in Europe and, after it, in America.
const AUTUMN: (&str, &str) = ("2026-10-23", "2026-11-03");

fn text(name: &str) -> String {
    let path =
        PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap()).join("../tests/data").join(name);
    let (mut file, mut text) = (File::open(&path).unwrap(), String::new());
    if name.ends_with(".gz") {
        GzDecoder::new(file).read_to_string(&mut text).unwrap();
    } else {
        file.read_to_string(&mut text).unwrap();
    }
    text
}

fn parsed(text: &str) -> impl Iterator<Item = Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap())
}

/// The reference's rows of a window, by id.
fn expected(window: (&str, &str)) -> BTreeMap<String, Value> {
    let all = text("firings_public.jsonl.gz") + &text("firings_dst_extra_public.jsonl.gz");
    let of_window = parsed(&all).filter(|row| row["window"][0] == window.0 && row["window"][1] == window.1);
    of_window.map(|row| (row["id"].as_str().unwrap().to_owned(), row)).collect()
}

/// Runs what the reference computes and compares; returns how many schedules and labelled launches agreed.
fn compare(window: (&str, &str)) -> (usize, usize) {
    let expected = expected(window);
    let schedules = text("schedules_public.jsonl") + &text("schedules_dst_extra_public.jsonl");
    let is_computed = |line: &&str| {
        let row: Value = serde_json::from_str(line).unwrap();
        expected.contains_key(row["id"].as_str().unwrap())
    };
    let computed: Vec<&str> = schedules.lines().filter(is_computed).collect();
    let output = run(&computed.join("\n"), window.0, window.1);
    let (lines, summary) = lines(&output);
    let mut found: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
    let mut refused = 0;
    for row in lines.iter().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
        let word = |key: &str| row[key].as_str().unwrap_or_else(|| panic!("{key} in {row}")).to_owned();
        if row.get("error").is_some() {
            // What never fires is refused here; the reference computes it: no launches.
            assert_eq!(expected[&word("id")]["count"], 0, "{row}");
            refused += 1;
        } else {
            found.entry(word("id")).or_default().push((word("launch_at"), word("dst")));
        }
    }
    assert_eq!(summary["refused"], refused);
    let mut labelled = 0;
    for line in &computed {
        let id = serde_json::from_str::<Value>(line).unwrap()["id"].as_str().unwrap().to_owned();
        let (want, have) = (&expected[&id], found.remove(&id).unwrap_or_default());
        let listed: Vec<(String, String)> = serde_json::from_value(want["firings"].clone()).unwrap();
        assert_eq!(want["count"], have.len(), "{line}");
        assert_eq!(have[..listed.len()], listed, "{line}");
        labelled += have.iter().filter(|(_, label)| !label.is_empty()).count();
    }
    assert!(found.is_empty(), "{found:?}");
    (computed.len() - refused, labelled)
}

#[test]
fn real_schedules_launch_as_in_the_reference_when_clocks_go_forward() {
    let (schedules, labelled) = compare(SPRING);
    assert!(schedules > 340 && labelled > 50, "{schedules} schedules, {labelled} labelled launches");
}

#[test]
fn real_schedules_launch_as_in_the_reference_when_clocks_go_back() {
    let (schedules, labelled) = compare(AUTUMN);
    assert!(schedules > 340 && labelled > 50, "{schedules} schedules, {labelled} labelled launches");
}
