//! The line: priority, then launch; how long it may be; runs that overlap.

use tidegate_domain::flow::{Flow, Overlap, Priority};
use tidegate_domain::occurrence::SkipReason;
use tidegate_domain::policy::WaitingRuns;
use tidegate_simulation::world::JobSpec;

use super::stage::{Stage, jobs_of, terms};

fn priority(value: u64) -> Flow {
    Flow { priority: Priority::new(value).unwrap(), ..Flow::default() }
}

#[tokio::test]
async fn the_line_is_served_by_priority_then_by_launch() {
    let stage = Stage::new().await;
    stage.policy("small", terms(1)).await;
    stage.job("first", 2, "small", priority(5)).await;
    let mut held = stage.arrived().await;
    stage.job_in(2, "late", 1, "small", priority(3)).await;
    stage.job_in(1, "early", 1, "small", priority(3)).await;
    stage.job_in(3, "urgent", 1, "small", priority(0)).await;
    stage.job_in(600, "future", 1, "small", priority(0)).await;
    stage.wait(5).await;
    let mut order = Vec::new();
    while let Some(event) = held.pop() {
        order.push(event.body.job_id.clone());
        stage.release(&[event]).await;
        held.extend(stage.arrived().await);
    }
    // The group has the rest of the first run already.
    assert_eq!(order, ["first", "first", "urgent", "early", "late"]);
}

#[tokio::test]
async fn a_blocked_policy_delays_no_other() {
    let stage = Stage::new().await;
    stage.policy("blocked", terms(1)).await;
    stage.policy("free", terms(1)).await;
    stage.job("hog", 1_000_000, "blocked", Flow::default()).await;
    stage.job("ten", 10, "free", Flow::default()).await;
    let mut done = 0;
    loop {
        let ours: Vec<_> = stage.arrived().await.into_iter().filter(|e| e.body.job_id == "ten").collect();
        if ours.is_empty() {
            break;
        }
        done += ours.len();
        stage.release(&ours).await;
    }
    assert_eq!(done, 10);
}

#[tokio::test]
async fn a_line_that_is_full_leaves_out_what_comes_and_says_so() {
    let stage = Stage::new().await;
    stage.policy("small", terms(1).with_max_waiting_runs(WaitingRuns::new(2).ok())).await;
    stage.job("a", 1, "small", Flow::default()).await;
    let mut held = stage.arrived().await;
    for id in ["b", "c", "d"] {
        stage.job(id, 1, "small", Flow::default()).await;
    }
    // One is at work, two wait.
    let mut done = Vec::new();
    while let Some(event) = held.pop() {
        done.push(event.body.job_id.clone());
        stage.release(&[event]).await;
        held.extend(stage.arrived().await);
    }
    assert_eq!(done, ["a", "b", "c"]);
    let left_out = stage.runs("d").await.pop().and_then(|run| run.stopped);
    assert_eq!(left_out.as_deref(), Some(SkipReason::LineFull.as_str()));
}

/// A cron job that fires each minute, of which every run takes longer than that.
async fn each_minute(overlap: Overlap) -> Stage {
    let stage = Stage::new().await;
    stage.policy("small", terms(10).with_max_waiting_runs(WaitingRuns::new(50).ok())).await;
    let spec = JobSpec::cron("* * * * *", "UTC", &stage.queue).unwrap().of(2).unwrap();
    let flow = Flow { overlap, ..Flow::default() };
    stage.put("each", spec.under("small").unwrap().attempts(1).unwrap(), flow).await;
    stage
}

#[tokio::test]
async fn with_overlap_skip_a_run_is_left_out_while_the_one_before_is_at_work() {
    let stage = each_minute(Overlap::Skip).await;
    let first = stage.wait(50).await;
    assert_eq!(first.len(), 2);
    stage.release(&first[..1]).await;
    // One event of the first run is at work when the second is due.
    assert_eq!(stage.wait(40).await.len(), 0);
    stage.release(&first[1..]).await;
    assert_eq!(stage.wait(60).await.len(), 2);
    let runs = stage.runs("each").await;
    let skipped = runs.iter().filter(|run| run.stopped.as_deref() == Some("overlap_skipped")).count();
    assert_eq!(skipped, 1, "{runs:?}");
    let row = runs.iter().find(|run| run.stopped.is_some()).unwrap();
    assert_eq!((row.tally.left_out, row.has_ended()), (2, true));
}

#[tokio::test]
async fn with_overlap_buffer_one_a_single_run_waits_and_goes_when_the_other_ends() {
    let stage = each_minute(Overlap::BufferOne).await;
    let mut first = stage.wait(50).await;
    assert_eq!(first.len(), 2);
    // Heartbeats keep the first run at work over the next three launches.
    for _ in 0..4 {
        let tokens = first.iter().map(|event| event.token.clone().unwrap()).collect();
        stage.world.engine.tokens().extend(&super::stage::client(), tokens, None).await.unwrap();
        let more = stage.wait(45).await;
        assert_eq!(jobs_of(&more), Vec::<&str>::new());
    }
    stage.release(&first.split_off(1)).await;
    assert_eq!(stage.arrived().await.len(), 0);
    stage.release(&first).await;
    let buffered = stage.arrived().await;
    assert_eq!(buffered.len(), 2, "the one that waits goes as soon as the first is finished");
    assert_eq!(buffered[0].body.launch_at, buffered[1].body.launch_at);
    let runs = stage.runs("each").await;
    let skipped = runs.iter().filter(|run| run.stopped.as_deref() == Some("overlap_skipped")).count();
    assert!(skipped >= 2, "{skipped}");
}
