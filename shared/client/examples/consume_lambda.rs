//! A Lambda function that works on the events of its SQS event source: prints their ids, takes as many `seconds` as a payload
//! has, and fails with its `error`.
//!
//! Its settings are the environment variables TIDEGATE_URL and TIDEGATE_API_KEY.

#![allow(clippy::print_stdout)]

use std::env::var;
use std::time::Duration;

use lambda_runtime::{Error, LambdaEvent, service_fn};
use tidegate_client::{Client, Event, LambdaConsumer, Lease, SqsEvent};
use tokio::time::sleep;

async fn work(event: Event, _lease: Lease) -> Result<(), String> {
    println!("{}", event.event_id);
    sleep(Duration::from_secs(event.payload["seconds"].as_u64().unwrap_or(0))).await;
    event.payload["error"].as_str().map_or(Ok(()), |error| Err(error.to_owned()))
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let client = Client::new(var("TIDEGATE_URL")?, var("TIDEGATE_API_KEY")?)?;
    let consumer = &LambdaConsumer::new(&client, work);
    let handler = service_fn(|invocation: LambdaEvent<SqsEvent>| async move {
        let deadline = invocation.context.deadline();
        Ok::<_, Error>(consumer.handle(invocation.payload, deadline).await)
    });
    lambda_runtime::run(handler).await
}
