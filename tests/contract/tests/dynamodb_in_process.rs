//! The contract of DynamoDB, held by the embedded one in process: in memory, and in a folder.

use std::sync::Arc;

use chrono::DateTime;
use tidegate_contract::{dynamodb, for_each_dynamodb_case};
use tidegate_domain::clock::ManualClock;
use tidegate_embedded::{ClientOptions, Durability, Embedded};

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::new(DateTime::from_timestamp(1_763_725_000, 0).unwrap_or_default()))
}

async fn bench(embedded: &Embedded) -> Result<dynamodb::Bench, Failure> {
    let client = embedded.dynamodb_with(&ClientOptions::without_retries());
    dynamodb::Bench::create(client, "case".to_owned()).await
}

macro_rules! run {
    ($($case:ident,)*) => {
        $(mod $case {
            #[tokio::test]
            async fn in_process() -> tidegate_contract::Outcome {
                let embedded = super::Embedded::in_memory(super::clock())?;
                super::dynamodb::$case(&super::bench(&embedded).await?).await
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn in_a_folder() -> tidegate_contract::Outcome {
                let folder = tempfile::tempdir()?;
                let open = super::Embedded::open(folder.path(), super::clock(), super::Durability::Process);
                super::dynamodb::$case(&super::bench(&open?).await?).await
            }
        })*
    };
}

for_each_dynamodb_case!(run);
