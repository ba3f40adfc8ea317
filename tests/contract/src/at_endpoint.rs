//! A case at whatever `AWS_ENDPOINT_URL` names, held against what is known of it there.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::Outcome;
use crate::emulators::{Expectation, expectation};

/// Where a case runs.
#[derive(Debug, Clone)]
pub struct Place {
    /// The address of the service.
    pub endpoint: String,
    /// What the names of all that the case creates begin with.
    pub prefix: String,
}

/// Runs a case, which must do at the endpoint what is known of it.
///
/// # Errors
/// When it does not, or `AWS_ENDPOINT_URL` is not set.
#[allow(clippy::print_stdout, reason = "a case that did not run as it stands is named in the output")]
pub async fn run<F>(name: &str, case: impl FnOnce(Place) -> F) -> Outcome
where
    F: Future<Output = Outcome> + Send + 'static,
{
    let endpoint = std::env::var("AWS_ENDPOINT_URL").map_err(|_| "AWS_ENDPOINT_URL is not set")?;
    let emulator = std::env::var("TIDEGATE_EMULATOR").unwrap_or_else(|_| "ministack".to_owned());
    let nanos = SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos();
    let prefix = format!("c{}", nanos % 1_000_000_000_000);
    let expected = expectation(&emulator, name);
    if let Expectation::TooSlow = expected {
        println!("{name} needs more real time than this run has; it runs in process and over loopback");
        return Ok(());
    }
    // A failed assertion of the case is a panic: it ends the task, not this test.
    let outcome = tokio::spawn(case(Place { endpoint, prefix })).await;
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
