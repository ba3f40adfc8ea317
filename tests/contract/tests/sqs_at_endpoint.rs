//! The contract of SQS, held by whatever `AWS_ENDPOINT_URL` names: an emulator in the end-to-end run.
//!
//! Ignored unless asked for: `cargo nextest run -p tidegate-contract --test sqs_at_endpoint --run-ignored only`.
//! `TIDEGATE_EMULATOR` says which emulator it is: `ministack` (the default), `moto`, `localstack`, or another name for one that is
//! held to everything.

use tidegate_contract::endpoint::client_of;
use tidegate_contract::{Bench, Outcome, Passage, at_endpoint, for_each_sqs_case, sqs};

/// Runs `case`, which must do at the endpoint what is known of it.
async fn run<F>(name: &str, case: impl FnOnce(Bench) -> F) -> Outcome
where
    F: Future<Output = Outcome> + Send + 'static,
{
    at_endpoint::run(name, |place| {
        case(Bench { client: client_of(&place.endpoint), prefix: place.prefix, passage: Passage::Real })
    })
    .await
}

macro_rules! cases {
    ($($area:ident::$case:ident,)*) => {
        $(mod $case {
            #[tokio::test]
            #[ignore = "needs AWS_ENDPOINT_URL"]
            async fn at_endpoint() -> tidegate_contract::Outcome {
                let name = concat!(stringify!($area), "::", stringify!($case));
                super::run(name, |bench| async move { super::sqs::$area::$case(&bench).await }).await
            }
        })*
    };
}

for_each_sqs_case!(cases);
