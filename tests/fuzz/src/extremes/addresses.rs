//! Ids, tokens and URLs, mangled.
//!
//! Invariant: an HTTP address that a delivery may be tried at lies on this machine, and answers or refuses at once. Others
//! are only sent where the client's allow-list refuses them before anything is called.

use tidegate_simulation::sim::Dice;

use super::{any_of, numbers, texts};
use crate::known::Known;

const IDS: &[&str] = &[
    "",
    " ",
    ".",
    "..",
    "...",
    "/",
    "%2F",
    "%2e%2e",
    "..%2f..",
    "a/b",
    "a b",
    "a%20b",
    "a|b",
    "a.b",
    "a:b",
    "a@b",
    "a+b",
    "a\u{0}b",
    "\u{e4}",
    "\u{1f680}",
    "-",
    "_",
    "at_",
    "at_0-0-0",
    "at_zzzzzzzzzzzzzz-63-0",
    "at_-1-0-0",
    "at_1-4294967295-1",
    "at_1-64-1",
    "job_",
    "job_1",
    "NULL",
    "null",
    "undefined",
    "nightly",
    "NIGHTLY",
    "nightly ",
    "bulk",
    "preview",
    "free",
    "nightly.1",
    "nightly.1.1795262400",
    "nightly.0.0",
    "nightly.4294967296.0",
    "nightly.1.-1",
    "nightly.1.9223372036854775807",
    "nightly.1.8210266876800",
    "nightly.1.1795262400.0",
    "nightly.1.1795262400.4294967295",
    "nightly.1.1795262400.4294967296",
    "nightly.1.1795262400.0.0",
    "minutely",
    "tok.acme.small.0.0.1.1.0",
    "acme",
    "beta",
    "gamma",
    "*",
    "UTC",
    "H:03",
    "'; DROP TABLE jobs;--",
];
const TOKENS: &[&str] = &[
    "",
    "tok",
    "tok.",
    "tok.acme.small.0.0.1.1.0",
    "tok.acme.small.0.0.1.1.0.2",
    "tok.acme.small.0.0.1.1.0.12",
    "tok.acme.small.0.0.1.1.0.13",
    "tok.acme.small.4294967295.4294967295.18446744073709551615.4294967295.4294967295",
    "tok.acme.small.4294967296.0.0.0.0",
    "tok.acme.small.-1.0.0.0.0",
    "tok.acme.small.0.99.1.1.0",
    "tok.acme.none.0.0.1.1.0",
    "tok.gamma.one.0.0.1.1.0",
    "tok.gamma.one.0.0.2.2.0",
    "tok.beta.one.0.0.1.1.0",
    "tok.nobody.one.0.0.1.1.0",
    "tok.acme.small.0.0.1.1.0 ",
    "TOK.acme.small.0.0.1.1.0",
    "tok.acme.small.+0.0.1.1.0",
    "tok.acme.small.00.0.1.1.0",
    "tok..small.0.0.1.1.0",
    "tok.acme..0.0.1.1.0",
    "tok.acme.small.0.0.1.1.0.x",
];
/// `{}` stands for where the queues are.
const QUEUES: &[&str] = &[
    "{}/000000000000/missing",
    "{}/000000000000/dispatch",
    "{}/000000000000/x/dispatch",
    "{}//dispatch",
    "{}/0/dispatch",
    "{}/000000000000/dispatch/",
    "{}/000000000000/releases?x=1",
    "{}/000000000000/scan#x",
    "{}/000000000000/",
    "{}/",
    "http://localhost:1/000000000000/acme",
    "http://other:9324/000000000000/acme",
    "HTTP://localhost/000000000000/acme",
    "{}/000000000000/acme%2Ex",
    "{}/000000000000/\u{e4}",
    "{}/000000000000/acme.fifo",
    "{}/999999999999/acme",
    "https://sqs.eu-west-1.amazonaws.com/123456789012/jobs",
    "https://sqs.eu-west-1.amazonaws.com/123456789012/jobs.fifo",
    "https://eu-west-1.queue.amazonaws.com/123456789012/jobs",
    "arn:aws:sqs:eu-west-1:123456789012:jobs",
    "acme",
    "localhost:9324/000000000000/acme",
    "http:///a/b",
    "http://",
    "https://a@b/c/d",
    "https://[::1/c/d",
    "ftp://x/1/2",
    "http://localhost:99999/000000000000/acme",
    "{}/\u{0}/acme",
    "",
];
/// Nothing listens there, and the system says so at once; or they are no URLs at all.
const ENDPOINTS: &[&str] = &[
    "http://127.0.0.1:1/",
    "http://[::1]:1/",
    "http://127.0.0.1:0/",
    "http://127.0.0.1:65536/",
    "http://127.0.0.1:-1/",
    "http://127.0.0.1:1/%zz",
    "http://127.0.0.1:1/\u{e4}?\u{1f680}#x",
    "http://127.0.0.1:1/../../..",
    "http://0x7f.1:1/",
    "http://2130706433:1/",
    "http://127.1:1/",
    "http://[::ffff:127.0.0.1]:1/",
    "http://[::1",
    "http://[]:1/",
    "http:///",
    "http://",
    "https://",
    "HTTP://127.0.0.1:1/",
    "http:/127.0.0.1:1/",
    "http:127.0.0.1:1",
    "http://127.0.0.1:1:1/",
    "https://127.0.0.1:1/",
    "https://127.0.0.1:1\\@127.0.0.1:1/",
    "http://a:b@127.0.0.1:1/",
    "http://%31:1/",
    "",
    "file:///etc/passwd",
    "data:,x",
    "javascript:1",
    "http://127.0.0.1:1/ ",
    " http://127.0.0.1:1/",
];
/// Addresses of others. Nothing calls them: the allow-list of the client refuses them.
const FOREIGN: &[&str] = &[
    "http://169.254.169.254/latest/meta-data",
    "http://10.0.0.1/",
    "https://hooks.example.invalid/x",
    "http://[fd00::1]/",
    "http://192.88.99.1/",
    "https://evil.invalid/127.0.0.1",
    "http://127.0.0.1.evil.invalid/",
    "http://metadata.invalid/",
];
const PATTERNS: &[&str] = &[
    "*",
    "**",
    "https://*",
    "http*",
    "h*",
    "https://*.a.invalid/hook",
    "https://a.invalid/*x*",
    "ftp://*",
    "/*",
    "",
    "https://",
    "*.invalid",
    "https://a.invalid/\u{0}*",
    "https://\u{e4}*",
    "arn:aws:sqs:*",
];

/// An id: one that is there, or a mangled one.
pub fn id(dice: &Dice, known: &Known) -> String {
    match dice.below(10) {
        0 | 1 => known.any_id(dice),
        2 => texts::text(dice),
        3 => "a".repeat(dice.pick(&[31, 32, 33, 47, 48, 49, 199, 200, 201, 5_000]).copied().unwrap_or(1)),
        4 => format!("{}.{}.{}", known.any_id(dice), numbers::whole(dice), numbers::whole(dice)),
        _ => any_of(dice, IDS),
    }
}

/// A token: one that was given out, or a mangled one.
pub fn token(dice: &Dice, known: &Known) -> String {
    match dice.below(10) {
        0..3 => known.tokens.any(dice),
        3 => texts::text(dice),
        4 => {
            let number = || numbers::whole(dice).unsigned_abs();
            format!(
                "tok.acme.small.{}.{}.{}.{}.{}",
                dice.below(2),
                dice.below(13),
                number(),
                number(),
                number()
            )
        }
        _ => any_of(dice, TOKENS),
    }
}

/// The URL of a queue, or what is nearly one.
pub fn queue(dice: &Dice, known: &Known) -> String {
    match dice.below(10) {
        0 | 1 => known.queue_url.clone(),
        2 => format!("{}/000000000000/{}", known.queue_origin, texts::text(dice)),
        _ => any_of(dice, QUEUES).replace("{}", &known.queue_origin),
    }
}

/// The URL of an endpoint on this machine, or what is nearly one.
pub fn endpoint(dice: &Dice, known: &Known) -> String {
    match dice.below(10) {
        0 | 1 => known.endpoint.clone(),
        2 => format!("http://127.0.0.1:1/{}", texts::text(dice)),
        _ => any_of(dice, ENDPOINTS),
    }
}

/// The URL of an endpoint of others, for requests that are refused before anything calls it.
pub fn foreign(dice: &Dice) -> String {
    any_of(dice, FOREIGN)
}

/// A pattern of an allow-list.
pub fn pattern(dice: &Dice) -> String {
    if dice.chance(800) { any_of(dice, PATTERNS) } else { texts::text(dice) }
}
