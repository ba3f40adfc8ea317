//! Texts: every plane of Unicode, what terminals and filters trip over, and very long ones.

use tidegate_simulation::sim::Dice;

use super::any_of;

/// The longest text that is drawn often, in repetitions of a piece.
const REPEATED: &[u64] = &[0, 1, 2, 31, 32, 33, 47, 48, 49, 199, 200, 201, 400, 511, 512, 513, 2_048, 2_049];
/// Lengths that cost time; drawn now and then.
const REPEATED_LONG: &[u64] = &[4_096, 32_767, 65_535, 65_536, 70_000];

const PIECES: &[&str] = &[
    "a",
    "A",
    "0",
    "-",
    "_",
    ".",
    "/",
    "\\",
    "\"",
    "'",
    "`",
    "%",
    "*",
    "{",
    "}",
    "{{",
    "}}",
    "{{run_id}}",
    "[",
    "]",
    "<",
    "&",
    "|",
    "#",
    "?",
    ":",
    "@",
    "+",
    "=",
    ";",
    ",",
    "~",
    "!",
    "$",
    " ",
    "\t",
    "\n",
    "\r",
    "\r\n",
    "\u{0}",
    "\u{1}",
    "\u{7f}",
    "\u{80}",
    "\u{85}",
    "\u{a0}",
    "\u{ad}",
    "\u{fffd}",
    "\u{fffe}",
    "\u{ffff}",
    "\u{feff}",
    "\u{200b}",
    "\u{200d}",
    "\u{202e}",
    "\u{2066}",
    "\u{2069}",
    "\u{2028}",
    "\u{2029}",
    "e\u{301}",
    "\u{301}",
    "\u{65e5}\u{672c}",
    "\u{5e9}\u{5dc}",
    "\u{645}\u{631}",
    "\u{df}",
    "\u{130}",
    "\u{131}",
    "\u{fb01}",
    "\u{1e9e}",
    "\u{1f680}",
    "\u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467}",
    "\u{1f1e9}\u{1f1ea}",
    "\u{10ffff}",
    "\u{e0001}",
    "\u{1d7d8}",
    "%00",
    "%2F",
    "%s%n",
    "${x}",
    "{0}",
    "__proto__",
    "constructor",
    "null",
    "true",
    "NaN",
    "../",
    "|",
];

/// JSON strings with escapes that a reader may stumble over, and texts that are no JSON.
const RAW: &[&str] = &[
    r#""\ud800""#,
    r#""\udc00""#,
    r#""\ud800\ud800""#,
    r#""\ud83d\ude80""#,
    r#""\udfff\ud800""#,
    r#""\u0000""#,
    r#""\u0""#,
    r#""\x41""#,
    r#""\""#,
    r#"""#,
    "\"\n\"",
    "\"\u{1}\"",
    r#""\/""#,
    r#""\u202e""#,
    "'a'",
    "undefined",
    "None",
    "True",
    "tru",
    "nul",
    "[",
    "]",
    "{",
    "}",
    "[,]",
    "[1,]",
    "{,}",
    r#"{"a":1,}"#,
    r#"{"a" 1}"#,
    r#"{a:1}"#,
    r#"{"":0}"#,
    r#"{"a":1,"a":2}"#,
    "/* */1",
    "1 2",
    "//",
    "\u{feff}1",
    "",
    " ",
];

/// A text.
pub fn text(dice: &Dice) -> String {
    match dice.below(20) {
        0..10 => (0..dice.within(0..=6)).map(|_| any_of(dice, PIECES)).collect(),
        10..17 => repeated(dice, REPEATED),
        17 => repeated(dice, REPEATED_LONG),
        _ => (0..dice.within(1..=12)).filter_map(|_| char::from_u32(dice.below(0x11_0000) as u32)).collect(),
    }
}

fn repeated(dice: &Dice, lengths: &[u64]) -> String {
    let length = dice.pick(lengths).copied().unwrap_or_default();
    any_of(dice, PIECES).repeat(length as usize)
}

/// What may stand in a JSON text where a value belongs.
pub fn raw(dice: &Dice) -> String {
    any_of(dice, RAW)
}
