//! Windows of batches, and runs that are stopped before their end.

use tidegate_domain::flow::{BatchWindow, Deadline, Flow, MaxFailures, OnDeadline};
use tidegate_engine::{Outcome, RunCancel};

use super::stage::{Stage, client, terms};

fn window(seconds: u64, on_deadline: OnDeadline, paced: bool) -> Flow {
    let deadline = Deadline::after(seconds).unwrap();
    Flow { window: Some(BatchWindow { deadline, on_deadline, paced }), ..Flow::default() }
}

#[tokio::test]
async fn at_its_deadline_the_rest_of_a_run_expires_with_a_reason() {
    let stage = Stage::new().await;
    stage.policy("small", terms(4)).await;
    stage.job("batch", 100, "small", window(20, OnDeadline::Expire, false)).await;
    let mut held = stage.arrived().await;
    let mut done = 0;
    for _ in 0..19 {
        stage.release(&[held.remove(0)]).await;
        done += 1;
        held.extend(stage.wait(1).await);
        assert_eq!(held.len(), 4);
    }
    stage.wait(1).await;
    // What was admitted goes on; nothing more is.
    stage.release(&held).await;
    assert_eq!(stage.wait(70).await.len(), 0);
    let run = stage.runs("batch").await.pop().unwrap();
    assert_eq!(run.stopped.as_deref(), Some("deadline"));
    assert_eq!((run.tally.succeeded, run.tally.left_out, run.has_ended()), (done + 4, 100 - done - 4, true));
}

#[tokio::test]
async fn a_run_that_continues_past_its_deadline_is_delivered_whole() {
    let stage = Stage::new().await;
    stage.policy("small", terms(4)).await;
    stage.job("batch", 12, "small", window(5, OnDeadline::Continue, false)).await;
    let mut done = 0;
    for _ in 0..3 {
        let events = stage.wait(4).await;
        done += events.len();
        stage.release(&events).await;
        let more = stage.arrived().await;
        done += more.len();
        stage.release(&more).await;
    }
    assert_eq!(done, 12);
}

#[tokio::test]
async fn a_paced_run_is_spread_evenly_over_its_window() {
    let stage = Stage::new().await;
    stage.policy("small", terms(50)).await;
    stage.job("batch", 30, "small", window(60, OnDeadline::Continue, true)).await;
    let first = stage.arrived().await;
    let mut at = vec![first.len()];
    stage.release(&first).await;
    for _ in 0..6 {
        let events = stage.wait(10).await;
        at.push(events.len());
        stage.release(&events).await;
    }
    // One at the launch, then one every two seconds; a message comes up to a second late.
    assert_eq!(at.iter().sum::<usize>(), 30);
    assert!(at[1..6].iter().all(|n| (4..=6).contains(n)), "{at:?}");
}

#[tokio::test]
async fn a_run_is_stopped_when_too_many_of_its_events_fail() {
    let stage = Stage::new().await;
    stage.policy("small", terms(5)).await;
    let flow = Flow { max_failures: MaxFailures::new(3).ok(), ..Flow::default() };
    stage.job("batch", 1_000, "small", flow).await;
    let mut held = stage.arrived().await;
    let mut failed = 0;
    while let Some(event) = held.pop() {
        stage.end(&[event], Outcome::Failed).await;
        failed += 1;
        held.extend(stage.arrived().await);
        assert!(failed < 20, "it goes on and on");
    }
    let run = stage.runs("batch").await.pop().unwrap();
    assert_eq!(run.stopped.as_deref(), Some("failure_limit"));
    assert!((3..=8).contains(&run.tally.failed), "{:?}", run.tally);
    assert!(run.has_ended(), "{:?}", run.tally);
}

#[tokio::test]
async fn a_cancelled_run_keeps_what_is_in_flight_and_leaves_out_the_rest() {
    let stage = Stage::new().await;
    stage.policy("small", terms(30)).await;
    stage.job("batch", 500, "small", Flow::default()).await;
    let held = stage.arrived().await;
    assert_eq!(held.len(), 30);
    let run = stage.runs("batch").await.pop().unwrap().id;
    let acme = client();
    let cancel = || stage.world.engine.jobs().cancel_run(&acme, &run);
    assert_eq!(cancel().await.unwrap(), RunCancel::Done);
    assert_eq!(cancel().await.unwrap(), RunCancel::Over);
    stage.release(&held).await;
    assert_eq!(stage.wait(61).await.len(), 0);
    let row = stage.runs("batch").await.pop().unwrap();
    assert_eq!((row.tally.succeeded, row.tally.left_out), (30, 470));
    let unknown = "batch.1.first".parse::<tidegate_domain::ids::RunId>();
    assert!(unknown.is_err());
    let absent = "other.1.1795262400".parse().unwrap();
    assert_eq!(stage.world.engine.jobs().cancel_run(&client(), &absent).await.unwrap(), RunCancel::Absent);
}
