//! The contract of SQS, held by the embedded one over HTTP, as other programs see it.

use std::sync::Arc;

use chrono::DateTime;
use tidegate_contract::endpoint::client_of;
use tidegate_contract::{Bench, Outcome, Passage, for_each_sqs_case, sqs};
use tidegate_domain::clock::ManualClock;
use tidegate_embedded::Embedded;
use tidegate_embedded::loopback::Limits;
use tokio::net::TcpListener;

/// Serves a service of its own, runs `case` on it, and ends the service.
async fn served(case: impl AsyncFnOnce(&Bench) -> Outcome) -> Outcome {
    let clock = Arc::new(ManualClock::new(DateTime::from_timestamp(1_763_725_000, 0).unwrap_or_default()));
    let embedded = Embedded::in_memory(clock.clone())?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let client = client_of(&format!("http://{}", listener.local_addr()?));
    let passage = Passage::Moved(clock, embedded.clone());
    let bench = Bench { client, prefix: "case".to_owned(), passage };
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let serving = embedded.serve_sqs(listener, Limits::default(), async {
        let _ = stopped.await;
    });
    let working = async {
        let outcome = case(&bench).await;
        drop((bench, stop));
        outcome
    };
    let (served, outcome) = tokio::join!(serving, working);
    served?;
    outcome
}

macro_rules! run {
    ($($area:ident::$case:ident,)*) => {
        $(mod $case {
            #[tokio::test]
            async fn over_loopback() -> tidegate_contract::Outcome {
                super::served(async |bench| super::sqs::$area::$case(bench).await).await
            }
        })*
    };
}

for_each_sqs_case!(run);
