//! The contract of DynamoDB, held by the embedded one in process.

use std::sync::Arc;

use chrono::DateTime;
use tidegate_contract::{dynamodb, for_each_dynamodb_case};
use tidegate_domain::clock::ManualClock;
use tidegate_embedded::{ClientOptions, Embedded};

async fn bench() -> Result<(Embedded, dynamodb::Bench), Box<dyn std::error::Error + Send + Sync>> {
    let clock = Arc::new(ManualClock::new(DateTime::from_timestamp(1_763_725_000, 0).unwrap_or_default()));
    let embedded = Embedded::in_memory(clock)?;
    let client = embedded.dynamodb_with(&ClientOptions::without_retries());
    Ok((embedded, dynamodb::Bench::create(client, "case".to_owned()).await?))
}

macro_rules! run {
    ($($case:ident,)*) => {
        $(mod $case {
            #[tokio::test]
            async fn in_process() -> tidegate_contract::Outcome {
                let (_embedded, bench) = super::bench().await?;
                super::dynamodb::$case(&bench).await
            }
        })*
    };
}

for_each_dynamodb_case!(run);
