//! The limits of `tidegate_domain` where they are told: in the OpenAPI document, the documents and the comments of the client
//! library.
//!
//! The document takes them from the types of the fields. What people wrote is compared with the constants here.

use std::fs;
use std::ops::RangeInclusive;

use serde_json::Value;
use tidegate_api::openapi_json;
use tidegate_domain::bounded::Bounded;
use tidegate_domain::flow::{Cost, Priority, WindowSeconds};
use tidegate_domain::limits::*;
use tidegate_domain::policy::{LeaseSeconds, MaxInFlight, WaitingRuns};
use tidegate_domain::rate_limit::{RateBurst, RateEvents};
use tidegate_domain::rules::{Jitter, MisfireLaunches};
use tidegate_domain::shard::ExpressionShards;
use tidegate_domain::time::FiringCount;

use crate::links::repository;

/// A number as documents write it: `10,000`.
fn number(number: impl Into<u64>) -> String {
    let digits = number.into().to_string();
    let groups: Vec<&str> = digits.as_bytes().rchunks(3).rev().map(|g| str::from_utf8(g).unwrap()).collect();
    groups.join(",")
}

fn range(bounds: RangeInclusive<u32>) -> String {
    format!("{} to {}", number(*bounds.start()), number(*bounds.end()))
}

fn up_to(most: usize) -> String {
    range(1..=u32::try_from(most).unwrap())
}

fn size(count: usize) -> String {
    number(count as u64)
}

fn bounds<L: Bounded>() -> String {
    range(L::BOUNDS)
}

/// Asserts that a file of the repository has each of the texts.
fn says(path: &str, texts: &[String]) {
    let file = fs::read_to_string(repository().join(path)).unwrap();
    // A sentence of a comment may go on in the next line.
    let file = file.replace("\n    /// ", " ").replace("\n/// ", " ");
    for text in texts {
        assert!(file.contains(text), "{path} does not say: {text}");
    }
}

#[test]
fn the_guides_name_the_limits_that_hold() {
    let (least, most) = (LeaseSeconds::BOUNDS.start().to_owned(), LeaseSeconds::BOUNDS.end().to_owned());
    let lease = format!("{} (one HTTP delivery) to {}", number(least), number(most));
    let priorities = Priority::BOUNDS;
    says(
        "docs/throttling.md",
        &[
            format!("| `max_in_flight` | tokens that may be held at once | {} |", bounds::<MaxInFlight>()),
            format!("unless it is extended | {lease} | {} |", LeaseSeconds::DEFAULT.get()),
            format!("with a `burst` | {}; burst {} |", bounds::<RateEvents>(), bounds::<RateBurst>()),
            format!("in its line, due or not | {} |", bounds::<WaitingRuns>()),
            format!("A call takes {} tokens.", up_to(TOKENS_PER_CALL)),
            format!("each has at most {} bytes", size(RESULT_BYTES)),
            format!("each event takes, {} and not", bounds::<Cost>()),
            format!("above the policy's limit | {} |", Cost::DEFAULT.get()),
            format!("place in the line: {} is first, {} last;", priorities.start(), priorities.end()),
            format!("go by launch time | {} |", Priority::DEFAULT.get()),
            format!("from its launch (up to {} days)", WindowSeconds::BOUNDS.end() / 86_400),
            format!("from one slot group, which has at most {TOKENS_PER_GROUP}."),
            format!("One of three, {} KiB at the most", PAYLOAD_BYTES / 1_024),
        ],
    );
    says(
        "docs/schedules.md",
        &[
            format!("one instant, or {} different ones", up_to(AT_INSTANTS)),
            format!("different instants; {AT_INSTANTS} is the most"),
            format!("| `jitter_seconds` | {}:", bounds::<Jitter>()),
            format!("all, at most {} |", MisfireLaunches::DEFAULT.get()),
            format!("exclusion calendars, at most {CALENDARS_PER_JOB} |"),
            format!("finds none within {SHIFT_DAYS} days is left out."),
            format!("when it is more than {MISFIRE_THRESHOLD_SECONDS} seconds"),
            format!("A calendar has at most {} entries.", size(CALENDAR_ENTRIES)),
            format!("a file of up to {} MiB", CALENDAR_FILE_BYTES >> 20),
            format!("the next firings of a job ({})", bounds::<FiringCount>()),
            format!("takes {} jobs and {} MiB.", up_to(BULK_JOBS), BULK_BODY_BYTES >> 20),
            format!("takes a reason of at most {CLOSED_BECAUSE_BYTES} bytes"),
            format!("is moved by so much, up to {} days;", DELAY_SECONDS.end() / 86_400),
            format!("Up to {VERSIONS_TOLD} are on a page, and"),
            format!("find the latest {VERSIONS_SEARCHED}."),
        ],
    );
    says(
        "docs/messages.md",
        &[
            format!("A call takes {} tokens", up_to(TOKENS_PER_CALL)),
            format!("| `result` | string, at most {} bytes |", size(RESULT_BYTES)),
            format!("| `error` | string, at most {} bytes |", size(RESULT_BYTES)),
        ],
    );
    says(
        "docs/operations.md",
        &[
            format!("one of up to {ALLOWED_TARGETS} patterns"),
            format!("counts until {AT_ROW_DAYS} days after its launch"),
            format!(
                "at the most once in {COUNT_AGAIN_SECONDS} seconds and {COUNT_AGAIN_MS_PER_ROW} ms for each row"
            ),
            format!("They are kept for {CHANGE_DAYS} days, or for the client's `history_days`"),
        ],
    );
    says("docs/how-to/reminders.md", &[format!("takes up to {} in one call", size(BULK_JOBS))]);
}

#[test]
fn the_descriptions_of_the_document_name_the_limits_that_hold() {
    says(
        "docs/openapi.json",
        &[
            format!("Its name: {} letters, digits, '-' or '_'", up_to(NAME_BYTES)),
            format!("Its name: {} letters, digits and", up_to(JOB_ID_BYTES)),
            format!("is one of them until {AT_ROW_DAYS} days after its launch"),
            format!("{} jobs, each as it would be posted alone.", up_to(BULK_JOBS)),
            format!("The whole body may have {} MiB.", BULK_BODY_BYTES >> 20),
            format!("An iCalendar file of up to {} MiB", CALENDAR_FILE_BYTES >> 20),
            format!("{} tokens: each either the token's text", up_to(TOKENS_PER_CALL)),
            format!("\"{} tokens.\"", up_to(TOKENS_PER_CALL)),
            format!("What came of the event, in at most {} bytes", size(RESULT_BYTES)),
            format!("Why the event failed, in at most {} bytes", size(RESULT_BYTES)),
            format!("are spread over, {}.", bounds::<ExpressionShards>()),
            format!("How many firings, {}; {} when", bounds::<FiringCount>(), FiringCount::DEFAULT.get()),
            format!("Any JSON of at most {} KiB", PAYLOAD_BYTES / 1_024),
            format!("in their order, of at most {} KiB in all", PAYLOAD_BYTES / 1_024),
            format!("JSON of at most {} KiB in whose texts", PAYLOAD_BYTES / 1_024),
            format!("the latest {} are made up for", MisfireLaunches::DEFAULT.get()),
            format!("up to {SHIFT_DAYS} days, and only where a calendar"),
            format!("does not launch: at most {CALENDARS_PER_JOB} names"),
            format!("after the launch it ends: up to {} days", WindowSeconds::BOUNDS.end() / 86_400),
            format!("{} different ones.", up_to(AT_INSTANTS)),
            format!("Up to {VERSIONS_TOLD} are on a page"),
            format!("Changes are kept for {CHANGE_DAYS} days"),
        ],
    );
}

#[test]
fn the_client_library_names_the_limits_that_hold() {
    says(
        "shared/protocol/src/release.rs",
        &[
            format!("What came of the event, in at most {} bytes", size(RESULT_BYTES)),
            format!("Why the event failed, in at most {} bytes", size(RESULT_BYTES)),
        ],
    );
    let firings = bounds::<FiringCount>();
    let default = FiringCount::DEFAULT.get();
    let tokens = up_to(TOKENS_PER_CALL);
    says(
        "shared/client/src/preview.rs",
        &[
            format!("How many firings, {firings}; {default} when `None`"),
            format!("The next firings of a job: {firings}, or {default} when `count`"),
        ],
    );
    says("shared/client/src/change.rs", &[format!("versions of a job, up to {VERSIONS_TOLD},")]);
    says("shared/client/src/bulk.rs", &[format!("Creates up to {} jobs", size(BULK_JOBS))]);
    says(
        "shared/client/src/tokens.rs",
        &[
            format!("Releases tokens whose events succeeded: {tokens}."),
            format!("each with how its event ended: {tokens}."),
            format!("what is to be kept of that: {tokens}."),
            format!("whether they ran out or not: {tokens} tokens."),
            format!("when that is `None`: {tokens} tokens."),
        ],
    );
}

#[test]
fn the_schema_of_a_release_has_the_limits_that_hold() {
    says(
        "docs/schemas/release.json",
        &[
            format!("\"maxItems\": {TOKENS_PER_CALL},"),
            format!("What came of the event, at most {} bytes.", size(RESULT_BYTES)),
            format!("Why it failed, at most {} bytes.", size(RESULT_BYTES)),
        ],
    );
}

/// A field whose type has bounds and that its body does not list would be described without them.
#[test]
fn every_number_that_a_body_takes_has_its_bounds_in_the_document() {
    let document: Value = serde_json::from_str(openapi_json()).unwrap();
    let mut numbers = Vec::new();
    for methods in document["paths"].as_object().unwrap().values() {
        for operation in methods.as_object().unwrap().values() {
            let body = &operation["requestBody"]["content"];
            numbers_in(&document, body, &mut String::new(), &mut numbers);
        }
    }
    assert!(numbers.len() > 20, "{numbers:?}");
    // A revision has no bound but its type's, and those of cron fields are no whole numbers by themselves.
    let unbounded: Vec<&String> = numbers
        .iter()
        .filter(|(name, schema)| {
            name != "revision" && (schema["maximum"].is_null() || schema["minimum"].is_null())
        })
        .map(|(name, _)| name)
        .collect();
    assert!(unbounded.is_empty(), "{unbounded:?}");
    assert!(numbers.iter().filter(|(name, _)| name == "revision").all(|(_, number)| number["minimum"] == 1));
}

/// The whole numbers that a schema has, with the names of the fields that they are in. `within` is the field that it is of.
fn numbers_in(document: &Value, schema: &Value, within: &mut String, numbers: &mut Vec<(String, Value)>) {
    match schema {
        Value::Object(members) => {
            if schema["readOnly"] == true {
                return;
            }
            if schema["type"] == "integer" || schema["type"][0] == "integer" {
                numbers.push((within.clone(), schema.clone()));
            }
            if let Some(reference) = schema["$ref"].as_str() {
                let target = document.pointer(reference.strip_prefix('#').unwrap()).unwrap();
                numbers_in(document, target, within, numbers);
            }
            for (name, member) in members {
                if name == "properties" {
                    for (field, member) in member.as_object().unwrap() {
                        numbers_in(document, member, &mut field.clone(), numbers);
                    }
                } else {
                    numbers_in(document, member, within, numbers);
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| numbers_in(document, item, within, numbers)),
        _ => {}
    }
}
