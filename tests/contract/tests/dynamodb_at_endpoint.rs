//! The contract of DynamoDB, held by whatever `AWS_ENDPOINT_URL` names: an emulator in the end-to-end run.
//!
//! Ignored unless asked for: `cargo nextest run -p tidegate-contract --test dynamodb_at_endpoint --run-ignored only`.
//! `TIDEGATE_EMULATOR` is that of the suite of SQS. An emulator's differences would be listed there too: none is known.

use tidegate_contract::endpoint::dynamodb_client_of;
use tidegate_contract::for_each_dynamodb_case;
use tidegate_contract::{Outcome, at_endpoint, dynamodb};

/// Runs `case` on a table of its own, which must do at the endpoint what is known of it.
async fn run<F>(name: &'static str, case: impl FnOnce(dynamodb::Bench) -> F + Send + 'static) -> Outcome
where
    F: Future<Output = Outcome> + Send + 'static,
{
    at_endpoint::run(name, |place| async move {
        let client = dynamodb_client_of(&place.endpoint);
        let bench = dynamodb::Bench::create(client, format!("{}-dynamodb", place.prefix)).await?;
        // A case that panics leaves its table behind: its name is of this run only.
        let outcome = case(bench.clone()).await;
        bench.remove().await?;
        outcome
    })
    .await
}

macro_rules! cases {
    ($($case:ident,)*) => {
        $(mod $case {
            #[tokio::test]
            #[ignore = "needs AWS_ENDPOINT_URL"]
            async fn at_endpoint() -> tidegate_contract::Outcome {
                let name = concat!("dynamodb::", stringify!($case));
                super::run(name, |bench| async move { super::dynamodb::$case(&bench).await }).await
            }
        })*
    };
}

for_each_dynamodb_case!(cases);
