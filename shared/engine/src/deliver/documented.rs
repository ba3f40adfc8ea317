//! What `docs/messages.md` says of webhooks, held against what is done. `shared/api` holds the messages themselves.

use super::{least_backoff, signature};

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
    let table = between("| `max_attempts` | the last delivery", "\n\n");
    let mut rows = 0;
    for row in table.lines().skip(2) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let attempts: u8 = cells[1].split(' ').next().unwrap().parse().unwrap();
        let seconds: i64 = (1..attempts).map(|attempt| least_backoff(attempt).num_seconds()).sum();
        let said = match seconds {
            ..60 => format!("{seconds} seconds"),
            60..3_600 => format!("{} minutes", seconds / 60),
            _ => format!("{} hour {} minutes", seconds / 3_600, seconds % 3_600 / 60),
        };
        assert_eq!(cells[2], said, "{row}");
        rows += 1;
    }
    assert_eq!(rows, 4);
}
