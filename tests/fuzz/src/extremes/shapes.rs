//! Shapes: nesting far beyond what anybody writes, empty containers, and payloads that grow when they are written.

use tidegate_simulation::sim::Dice;

use super::{any_of, numbers, texts};
use crate::json::Json;

/// Levels around the bounds of readers, and far beyond.
const LEVELS: &[u64] = &[2, 10, 63, 64, 65, 126, 127, 128, 129, 130, 255, 256, 1_000, 5_000, 30_000, 60_000];

/// Nesting, closed or not.
pub fn deep(dice: &Dice) -> Json {
    let levels = dice.pick(LEVELS).copied().unwrap_or_default() as usize;
    let (open, inner, close) = match dice.below(4) {
        0 | 1 => ("[", "", "]"),
        2 => (r#"{"a":"#, "1", "}"),
        _ => (r#"[{"":"#, "[]", "}]"),
    };
    let close = if dice.chance(900) { close.repeat(levels) } else { String::new() };
    Json::Raw(format!("{}{inner}{close}", open.repeat(levels)))
}

/// A container with nothing, or nearly nothing, in it.
pub fn empty(dice: &Dice) -> Json {
    Json::Raw(any_of(dice, &["[]", "{}", "[[]]", "[{}]", "[null]", r#"{"":null}"#, r#"[""]"#, r#"{"a":{}}"#]))
}

/// A payload: quotes that double when they are escaped, templates that grow when they are filled in, and the rest.
pub fn payload(dice: &Dice) -> Json {
    match dice.below(12) {
        0 => Json::text("\"".repeat(dice.within(1..=4) as usize * 8_191)),
        1 => Json::text("\\".repeat(dice.within(1..=2) as usize * 16_000)),
        2 => Json::text("{{run_id}}".repeat(dice.within(1..=600) as usize)),
        3 => Json::text("\u{1}".repeat(dice.within(1..=10_000) as usize)),
        4 | 5 => deep(dice),
        6 => Json::List((0..dice.below(20)).map(|_| Json::Raw(numbers::number(dice))).collect()),
        7 => Json::Object((0..dice.below(20)).map(|_| (texts::text(dice), Json::null())).collect()),
        8 => Json::text(any_of(dice, TEMPLATES)),
        9 => empty(dice),
        10 => Json::Raw(numbers::number(dice)),
        _ => Json::text(texts::text(dice)),
    }
}

const TEMPLATES: &[&str] = &[
    "{{index}}",
    "{{count}}",
    "{{job_id}}",
    "{{run_id}}",
    "{{event_id}}",
    "{{launch_at}}",
    "{{index}",
    "{{}}",
    "{{{{",
    "{{ index }}",
    "{{index}}{{index}}",
    "{{unknown}}",
    "{{index+1}}",
    "}}{{",
    "\\{{index}}",
];
