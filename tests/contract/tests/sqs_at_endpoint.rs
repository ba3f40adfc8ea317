//! The contract of SQS, held by whatever `AWS_ENDPOINT_URL` names: an emulator in the end-to-end run.
//!
//! Ignored unless asked for: `cargo nextest run -p tidegate-contract --test sqs_at_endpoint --run-ignored only`.
//! `TIDEGATE_EMULATOR` says which emulator it is: `ministack` (the default), `moto`, or `none` for AWS itself.

#![allow(clippy::print_stdout, reason = "a case that did not run as it stands is named in the output")]

use std::time::{SystemTime, UNIX_EPOCH};

use tidegate_contract::emulators::{Expectation, expectation};
use tidegate_contract::endpoint::client_of;
use tidegate_contract::{Bench, Outcome, Passage, for_each_sqs_case, sqs};

/// Runs `case`, which must do at the endpoint what is known of it.
async fn at_endpoint<F>(name: &str, case: impl FnOnce(Bench) -> F) -> Outcome
where
    F: Future<Output = Outcome> + Send + 'static,
{
    let endpoint = std::env::var("AWS_ENDPOINT_URL").map_err(|_| "AWS_ENDPOINT_URL is not set")?;
    let emulator = std::env::var("TIDEGATE_EMULATOR").unwrap_or_else(|_| "ministack".to_owned());
    let nanos = SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos();
    let prefix = format!("c{}", nanos % 1_000_000_000_000);
    let bench = Bench { client: client_of(&endpoint), prefix, passage: Passage::Real };
    let expected = expectation(&emulator, name);
    if let Expectation::TooSlow = expected {
        println!("{name} needs more real time than this run has; it runs in process and over loopback");
        return Ok(());
    }
    // A failed assertion of the case is a panic: it ends the task, not this test.
    let outcome = tokio::spawn(case(bench)).await;
    match (expected, outcome) {
        (Expectation::Differs(how), Ok(Ok(()))) => {
            Err(format!("{emulator} no longer differs ({how}): take {name} off its list").into())
        }
        (Expectation::Differs(how), _) => {
            println!("{name}: {emulator} differs from AWS, as is known: {how}");
            Ok(())
        }
        (_, Ok(outcome)) => outcome,
        (_, Err(panicked)) => Err(panicked.into()),
    }
}

macro_rules! run {
    ($($area:ident::$case:ident,)*) => {
        $(mod $case {
            #[tokio::test]
            #[ignore = "needs AWS_ENDPOINT_URL"]
            async fn at_endpoint() -> tidegate_contract::Outcome {
                let name = concat!(stringify!($area), "::", stringify!($case));
                super::at_endpoint(name, |bench| async move { super::sqs::$area::$case(&bench).await }).await
            }
        })*
    };
}

for_each_sqs_case!(run);
