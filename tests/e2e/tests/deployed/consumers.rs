//! The consumers' examples at work: processes that read a queue, and functions with an event source.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tidegate_e2e::api::Api;
use tidegate_e2e::consumers::{Consumers, Work};
use tidegate_e2e::deployed::Deployed;
use tidegate_e2e::queue::Queue;

/// A message comes again when its visibility time-out is over, and is set aside instead.
const SET_ASIDE_WITHIN: Duration = Duration::from_secs(90);

async fn works_as_a_process(language: &str) -> Result<()> {
    let (deployed, consumers) = (Deployed::from_environment()?, Consumers::from_environment()?);
    let client = Api::register(&deployed, &format!("{language}-process")).await?;
    let queue = Queue::create(&format!("tidegate-e2e-{language}")).await?;
    let example = consumers.start_example(language, queue.url(), &client.key)?;
    let work = Work { api: &client.api, job_id: "work" };
    work.schedule(queue.url()).await?;
    let events = work.see_through().await.with_context(|| format!("with the example in {language}"))?;
    let worked_on = example.end().await.with_context(|| format!("the example in {language}"))?;
    ensure!(worked_on == events, "{language} worked on {worked_on:?}");
    queue.until_empty().await?;
    queue.remove().await
}

/// They extend the lease of work that outlasts it, release each event as its work ended, and end well.
#[tokio::test]
#[ignore = "needs a deployed stack: cargo xtask e2e"]
async fn the_examples_work_off_a_batch_from_a_queue() -> Result<()> {
    tokio::try_join!(
        works_as_a_process("rust"),
        works_as_a_process("python"),
        works_as_a_process("typescript")
    )?;
    Ok(())
}

async fn works_as_a_function(language: &str, queue_url: &str) -> Result<()> {
    let (deployed, consumers) = (Deployed::from_environment()?, Consumers::from_environment()?);
    let api = Api::without_key(&deployed)?.with_key(&consumers.key);
    let queue = Queue::at(queue_url).await;
    queue.send(&format!("no event for {language}")).await?;
    let work = Work { api: &api, job_id: language };
    work.schedule(queue_url).await?;
    work.see_through().await.with_context(|| format!("with the function in {language}"))?;
    queue.until_empty().await
}

/// They do the same, and report a message that is no event: it alone stays in the queue, and is set aside by it.
#[tokio::test]
#[ignore = "needs a deployed stack: cargo xtask e2e"]
async fn the_functions_work_off_a_batch_from_their_event_source() -> Result<()> {
    let consumers = Consumers::from_environment()?;
    tokio::try_join!(
        works_as_a_function("rust", consumers.output("RustUrl")?),
        works_as_a_function("python", consumers.output("PythonUrl")?),
        works_as_a_function("typescript", consumers.output("TypescriptUrl")?)
    )?;
    let rejected = Queue::at(consumers.output("RejectedUrl")?).await;
    let mut messages = Vec::new();
    for _ in 0..3 {
        messages.push(rejected.next_message(SET_ASIDE_WITHIN).await?);
    }
    messages.sort();
    ensure!(
        messages == ["python", "rust", "typescript"].map(|language| format!("no event for {language}")),
        "set aside were {messages:?}"
    );
    Ok(())
}
