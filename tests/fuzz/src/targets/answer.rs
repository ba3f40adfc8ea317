//! What an HTTP endpoint answers, byte for byte.
//!
//! Invariant: whatever is left open after an answer has its whole head, so that nobody waits for real time to pass.

use std::fmt;

use tidegate_simulation::sim::Dice;

use crate::extremes::{any_of, instants, numbers, texts};

/// Most bytes of a body: more is not read by anybody.
const BODY_BYTES: u64 = 200_000;

/// What becomes of the connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// It is closed behind the answer.
    Close,
    /// It is closed when so many bytes of the answer are left.
    Cut(usize),
    /// It stays open.
    Open,
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Its first line.
    pub status: String,
    /// Its headers, as they are written.
    pub headers: Vec<(String, String)>,
    /// Its body, as it is written.
    pub body: Vec<u8>,
    /// What becomes of the connection.
    pub ending: Ending,
}

impl Answer {
    /// What an endpoint answers when nothing is asked of it.
    pub fn plain() -> Self {
        let status = "HTTP/1.1 204 No Content".to_owned();
        Self { status, headers: Vec::new(), body: Vec::new(), ending: Ending::Open }
    }

    /// Draws one: half of them such as servers send, but for the values of their headers.
    pub fn draw(dice: &Dice) -> Self {
        if dice.chance(500) {
            let statuses = [
                "200 OK",
                "202 ",
                "204 No Content",
                "301 ",
                "404 ",
                "408 ",
                "410 ",
                "425 ",
                "429 ",
                "500 ",
                "503 ",
                "599 ",
            ];
            let status = format!("HTTP/1.1 {}", any_of(dice, &statuses));
            let headers = vec![
                ("Retry-After".to_owned(), retry_after(dice)),
                ("Content-Length".to_owned(), "0".to_owned()),
            ];
            return Self { status, headers, body: Vec::new(), ending: Ending::Open };
        }
        let (headers, body) = body(dice);
        let headers = headers.into_iter().chain((0..dice.below(4)).map(|_| header(dice))).collect();
        let ending = if dice.chance(300) { Ending::Cut(dice.below(400) as usize) } else { Ending::Close };
        Self { status: status(dice), headers, body, ending }
    }

    /// The bytes that are sent.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = format!("{}\r\n", self.status).into_bytes();
        for (name, value) in &self.headers {
            bytes.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
        }
        bytes.extend_from_slice(b"\r\n");
        bytes.extend_from_slice(&self.body);
        if let Ending::Cut(left) = self.ending {
            bytes.truncate(bytes.len().saturating_sub(left));
        }
        bytes
    }
}

fn status(dice: &Dice) -> String {
    match dice.below(4) {
        0 => any_of(
            dice,
            &[
                "HTTP/1.1 200",
                "HTTP/1.0 200 OK",
                "HTTP/2 200",
                "HTTP/9.9 999 x",
                "HTTP/1.1 99 x",
                "HTTP/1.1 1000 x",
                "HTTP/1.1 -1 x",
                "HTTP/1.1  200 OK",
                "http/1.1 200 ok",
                "200 OK",
                "",
                "\u{0}",
                "HTTP/1.1 200 \u{1f680}",
                "HTTP/1.1 20\u{0}0",
                "GET / HTTP/1.1",
            ],
        ),
        _ => format!("HTTP/1.1 {} {}", dice.within(100..=999), any_of(dice, &["", "OK", "x"])),
    }
}

/// A `Retry-After` of any kind.
fn retry_after(dice: &Dice) -> String {
    const POOL: &[&str] = &[
        "0",
        "1",
        "2",
        "60",
        "900",
        "901",
        "7200",
        "-1",
        "9223372036854775",
        "9223372036854776",
        "9223372036854775807",
        "9223372036854775808",
        "-9223372036854775808",
        "-9223372036854775807",
        "18446744073709551615",
        "8210266876799",
        "1e3",
        "1.5",
        " 5",
        "5 ",
        "+5",
        "",
        "Wed, 21 Oct 2015 07:28:00 GMT",
        "Fri, 31 Dec 9999 23:59:59 GMT",
        "Sun, 00 Jan 0000 00:00:00 GMT",
        "5, 6",
    ];
    match dice.below(10) {
        0 => instants::instant(dice).replace(['\r', '\n'], ""),
        1 => numbers::number(dice),
        2 => numbers::whole(dice).to_string(),
        _ => any_of(dice, POOL),
    }
}

fn header(dice: &Dice) -> (String, String) {
    let name = any_of(
        dice,
        &[
            "Retry-After",
            "retry-after",
            "Location",
            "Content-Type",
            "Content-Encoding",
            "Connection",
            "Upgrade",
            "Set-Cookie",
            "Transfer-Encoding",
            "Content-Length",
            "Date",
            "x",
            "X-\u{e4}",
            "",
            " ",
            "a b",
            "\u{0}",
            "Trailer",
        ],
    );
    let value = match dice.below(5) {
        0 => retry_after(dice),
        1 => texts::text(dice),
        2 => "x".repeat(dice.pick(&[1, 8_000, 70_000, 500_000]).copied().unwrap_or(1)),
        3 => any_of(
            dice,
            &[
                "close",
                "keep-alive",
                "chunked",
                "gzip",
                "br",
                "h2c",
                "0",
                "1",
                "-1",
                "http://127.0.0.1:1/",
                "99999999999999999999",
            ],
        ),
        _ => numbers::number(dice),
    };
    (name, value)
}

/// A body with the headers that tell of it, truly or not.
fn body(dice: &Dice) -> (Vec<(String, String)>, Vec<u8>) {
    let text = match dice.below(6) {
        0 => Vec::new(),
        1 => texts::text(dice).into_bytes(),
        2 => vec![0xff; dice.below(64) as usize],
        3 => vec![b'x'; dice.below(BODY_BYTES) as usize],
        4 => b"\xc3\x28\xa0\xa1\xe2\x28\xa1\xf0\x28\x8c\xbc".to_vec(),
        _ => br#"{"ok":true}"#.to_vec(),
    };
    let header = |name: &str, value: String| vec![(name.to_owned(), value)];
    match dice.below(6) {
        0 => (Vec::new(), text),
        1 => (header("Content-Length", numbers::number(dice)), text),
        2 => (header("Transfer-Encoding", "chunked".to_owned()), text),
        3 => {
            let size = any_of(
                dice,
                &["5", "ffffffffffffffff", "fffffffffffffffff", "-1", "x", "", "0;a=b", "00000000000005"],
            );
            let chunk = format!("{size}\r\nhello\r\n0\r\n\r\n").into_bytes();
            (header("Transfer-Encoding", "chunked".to_owned()), chunk)
        }
        _ => (header("Content-Length", text.len().to_string()), text),
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "an endpoint answers: {:?}", self.status)?;
        for (name, value) in &self.headers {
            writeln!(f, "{name:?}: {value:?}")?;
        }
        write!(
            f,
            "and a body of {} bytes: {}; then: {:?}",
            self.body.len(),
            self.body.escape_ascii(),
            self.ending
        )
    }
}
