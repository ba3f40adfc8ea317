//! What `docs/messages.md` says of webhooks, held against what is done. `shared/api` holds the messages themselves.

use chrono::DateTime;
use tidegate_domain::retry::{Retry, Tries};

use super::signature;

const MESSAGES: &str = include_str!("../../../../docs/messages.md");

/// The text between two texts of the document.
fn between(from: &str, to: &str) -> &'static str {
    let (_, rest) = MESSAGES.split_once(from).unwrap_or_else(|| panic!("{from} is not in the document"));
    rest.split_once(to).unwrap_or_else(|| panic!("{to} does not follow {from}")).0
}

#[test]
fn the_request_that_is_shown_was_signed_with_the_secret_that_is_shown() {
    let request = between("```http\n", "\n```");
    let (head, body) = request.split_once("\n\n").unwrap();
    let header = |name: &str| {
        let line = head.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")));
        line.unwrap_or_else(|| panic!("the request has no {name}"))
    };
    let secret = between("was signed with `", "`");
    let sent_at = header("webhook-timestamp").parse().unwrap();
    let signature = signature::sign(secret, header("webhook-id"), sent_at, body);
    assert_eq!(signature.as_deref(), Some(header("webhook-signature")));
}

#[test]
fn retries_last_as_long_as_is_said() {
    let words = |seconds: i64| {
        let parts = [(seconds / 3_600, "hour"), (seconds % 3_600 / 60, "minute"), (seconds % 60, "second")];
        let parts = parts.into_iter().filter(|(number, _)| *number > 0);
        let said: Vec<String> =
            parts.map(|(n, unit)| format!("{n} {unit}{}", if n == 1 { "" } else { "s" })).collect();
        said.join(" ")
    };
    let now = DateTime::from_timestamp(1_800_000_000, 0).unwrap();
    let bound_s = |failed: u8| {
        let tries = Tries { made: failed, failed, since_s: now.timestamp() };
        let drawn = (0..20_000_u64).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let longest = drawn.filter_map(|draw| Retry::default().wait(tries, None, now, draw)).max();
        (longest.unwrap().num_milliseconds() + 999) / 1_000
    };
    let table = between("| failures in a row |", "\n\n");
    let mut rows = 0;
    for row in table.lines().skip(2) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let failures: u8 = cells[1].parse().unwrap();
        let so_far = (1..=failures).map(bound_s).sum();
        assert_eq!((cells[2], cells[3]), (&*words(bound_s(failures)), &*words(so_far)), "{row}");
        rows += 1;
    }
    assert_eq!(rows, 4);
}
