//! The contract of SQS, held by the embedded one in process.

use std::sync::Arc;

use chrono::DateTime;
use tidegate_contract::{Bench, Passage, for_each_sqs_case, sqs};
use tidegate_domain::clock::ManualClock;
use tidegate_embedded::{ClientOptions, Embedded};

/// A bench of its own for each case: nothing is shared.
fn bench() -> Bench {
    let clock = Arc::new(ManualClock::new(DateTime::from_timestamp(1_763_725_000, 0).unwrap_or_default()));
    let embedded = Embedded::in_memory(clock.clone()).unwrap_or_else(|error| unreachable!("{error}"));
    let client = embedded.sqs_with(&ClientOptions::without_retries());
    Bench { client, prefix: "case".to_owned(), passage: Passage::Moved(clock, embedded) }
}

macro_rules! run {
    ($($area:ident::$case:ident,)*) => {
        $(mod $case {
            #[tokio::test]
            async fn in_process() -> tidegate_contract::Outcome {
                super::sqs::$area::$case(&super::bench()).await
            }
        })*
    };
}

for_each_sqs_case!(run);
