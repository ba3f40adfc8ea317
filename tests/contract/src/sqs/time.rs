//! What time does: visibility, delay, retention, long polls.

use std::time::{Duration, Instant};

use aws_sdk_sqs::types::{MessageSystemAttributeName as System, QueueAttributeName as Name};

use crate::bench::{Bench, Outcome, Passage, receipt, refusal};

/// A received message is hidden for its visibility timeout and then received again, with another receipt.
pub async fn an_unacknowledged_message_comes_back(bench: &Bench) -> Outcome {
    let url = bench.queue("back", &[(Name::VisibilityTimeout, "2")]).await?;
    bench.send(&url, "x").await?;
    let first = bench.receive_one(&url).await?;
    assert_eq!(bench.bodies(&url).await?, Vec::<String>::new());
    bench.passage.pass(2).await;
    let receive = bench.client.receive_message().queue_url(&url);
    let received = receive.message_system_attribute_names(System::ApproximateReceiveCount).send().await?;
    let second = received.messages().first().ok_or("the message should have come back")?;
    assert_eq!(second.message_id(), first.message_id());
    assert_ne!(second.receipt_handle(), first.receipt_handle());
    let count = second.attributes().and_then(|all| all.get(&System::ApproximateReceiveCount));
    assert_eq!(count.map(String::as_str), Some("2"));
    Ok(())
}

/// A receipt of a standard queue stays good after its timeout, until the message is received again.
pub async fn a_receipt_outlives_its_timeout(bench: &Bench) -> Outcome {
    let url = bench.queue("outlived", &[(Name::VisibilityTimeout, "1")]).await?;
    bench.send(&url, "x").await?;
    let message = bench.receive_one(&url).await?;
    bench.passage.pass(1).await;
    bench.delete(&url, &message).await?;
    assert_eq!(bench.bodies(&url).await?, Vec::<String>::new());
    Ok(())
}

/// With an older receipt a delete succeeds and leaves the message.
pub async fn only_the_last_receipt_deletes(bench: &Bench) -> Outcome {
    let url = bench.queue("last", &[(Name::VisibilityTimeout, "1")]).await?;
    bench.send(&url, "x").await?;
    let first = bench.receive_one(&url).await?;
    bench.passage.pass(1).await;
    bench.receive_one(&url).await?;
    bench.delete(&url, &first).await?;
    bench.passage.pass(1).await;
    let last = bench.receive_one(&url).await?;
    bench.delete(&url, &last).await?;
    bench.passage.pass(1).await;
    assert_eq!(bench.bodies(&url).await?, Vec::<String>::new());
    Ok(())
}

/// `ChangeMessageVisibility` counts from now, in both directions.
pub async fn visibility_can_be_ended_and_extended(bench: &Bench) -> Outcome {
    let url = bench.queue("changed", &[(Name::VisibilityTimeout, "1")]).await?;
    bench.send(&url, "x").await?;
    let message = bench.receive_one(&url).await?;
    let change = |handle: &str, timeout: i32| {
        bench
            .client
            .change_message_visibility()
            .queue_url(&url)
            .receipt_handle(handle)
            .visibility_timeout(timeout)
            .send()
    };
    change(receipt(&message), 60).await?;
    bench.passage.pass(2).await;
    assert_eq!(bench.bodies(&url).await?, Vec::<String>::new());
    change(receipt(&message), 0).await?;
    assert_eq!(bench.bodies(&url).await?, ["x"]);
    Ok(())
}

/// More than 12 hours, counted from the receive.
pub async fn visibility_ends_after_twelve_hours(bench: &Bench) -> Outcome {
    let url = bench.queue("twelve-hours", &[]).await?;
    bench.send(&url, "x").await?;
    let message = bench.receive_one(&url).await?;
    let change = |timeout: i32| {
        let change =
            bench.client.change_message_visibility().queue_url(&url).receipt_handle(receipt(&message));
        change.visibility_timeout(timeout).send()
    };
    assert_eq!(refusal(change(43_201).await)?, "InvalidParameterValue");
    bench.passage.pass(1).await;
    assert_eq!(refusal(change(43_200).await)?, "InvalidParameterValue");
    change(43_000).await?;
    Ok(())
}

/// The visibility of a message that is visible cannot be changed.
pub async fn a_visible_message_is_not_in_flight(bench: &Bench) -> Outcome {
    let url = bench.queue("visible", &[]).await?;
    bench.send(&url, "x").await?;
    let message = bench.receive_one(&url).await?;
    let change = |timeout: i32| {
        let change =
            bench.client.change_message_visibility().queue_url(&url).receipt_handle(receipt(&message));
        change.visibility_timeout(timeout).send()
    };
    change(0).await?;
    assert_eq!(refusal(change(10).await)?, "AWS.SimpleQueueService.MessageNotInflight");
    Ok(())
}

/// Nor can that of a message that is gone.
pub async fn a_deleted_message_is_not_in_flight(bench: &Bench) -> Outcome {
    let url = bench.queue("gone", &[]).await?;
    bench.send(&url, "x").await?;
    let message = bench.receive_one(&url).await?;
    bench.delete(&url, &message).await?;
    let change = bench.client.change_message_visibility().queue_url(&url).receipt_handle(receipt(&message));
    assert_eq!(refusal(change.visibility_timeout(10).send().await)?, "InvalidParameterValue");
    Ok(())
}

/// `DelaySeconds` of a message.
pub async fn a_delayed_message_waits(bench: &Bench) -> Outcome {
    let url = bench.queue("delayed", &[]).await?;
    let send =
        |delay: i32| bench.client.send_message().queue_url(&url).message_body("x").delay_seconds(delay);
    send(2).send().await?;
    assert_eq!(bench.bodies(&url).await?, Vec::<String>::new());
    bench.passage.pass(2).await;
    assert_eq!(bench.bodies(&url).await?, ["x"]);
    Ok(())
}

/// 0 to 900 seconds.
pub async fn delays_are_checked(bench: &Bench) -> Outcome {
    let url = bench.queue("delays", &[]).await?;
    for delay in [901, -1] {
        let send = bench.client.send_message().queue_url(&url).message_body("x").delay_seconds(delay);
        assert_eq!(refusal(send.send().await)?, "InvalidParameterValue", "{delay}");
    }
    Ok(())
}

/// `DelaySeconds` of a queue, and a message that has its own.
pub async fn a_queue_delays_by_default(bench: &Bench) -> Outcome {
    let url = bench.queue("delaying", &[(Name::DelaySeconds, "2")]).await?;
    bench.send(&url, "by default").await?;
    bench.client.send_message().queue_url(&url).message_body("at once").delay_seconds(0).send().await?;
    assert_eq!(bench.bodies(&url).await?, ["at once"]);
    bench.passage.pass(2).await;
    assert_eq!(bench.bodies(&url).await?, ["by default"]);
    Ok(())
}

/// A message sent during a long poll ends it.
pub async fn a_long_poll_ends_with_a_message(bench: &Bench) -> Outcome {
    let url = bench.queue("polled", &[]).await?;
    let (received, sent) =
        tokio::join!(bench.client.receive_message().queue_url(&url).wait_time_seconds(20).send(), async {
            bench.passage.pass(1).await;
            bench.send(&url, "x").await
        });
    sent?;
    assert_eq!(received?.messages().first().and_then(|message| message.body()), Some("x"));
    Ok(())
}

/// Without a message it ends when its time is over, not before.
pub async fn a_long_poll_ends_with_its_time(bench: &Bench) -> Outcome {
    let url = bench.queue("idle", &[(Name::ReceiveMessageWaitTimeSeconds, "2")]).await?;
    let started = Instant::now();
    let mut poll = std::pin::pin!(bench.client.receive_message().queue_url(&url).send());
    let turns = async {
        for _ in 0..1000 {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        biased;
        received = &mut poll => return Err(format!("the poll ended at once: {received:?}").into()),
        () = turns => {}
    }
    let (received, ()) = tokio::join!(poll, bench.passage.pass(2));
    assert!(matches!(bench.passage, Passage::Moved(..)) || started.elapsed() >= Duration::from_secs(2));
    assert_eq!(received?.messages().len(), 0);
    Ok(())
}

/// A message whose delay ends during a long poll ends it.
pub async fn a_long_poll_sees_a_delay_end(bench: &Bench) -> Outcome {
    let url = bench.queue("soon", &[]).await?;
    bench.client.send_message().queue_url(&url).message_body("x").delay_seconds(1).send().await?;
    let poll = bench.client.receive_message().queue_url(&url).wait_time_seconds(10).send();
    let (received, ()) = tokio::join!(poll, bench.passage.pass(1));
    assert_eq!(received?.messages().first().and_then(|message| message.body()), Some("x"));
    Ok(())
}

/// `MessageRetentionPeriod`.
pub async fn old_messages_expire(bench: &Bench) -> Outcome {
    let url = bench.queue("old", &[(Name::MessageRetentionPeriod, "60")]).await?;
    bench.send(&url, "old").await?;
    bench.passage.pass(30).await;
    bench.send(&url, "young").await?;
    bench.passage.pass(30).await;
    assert_eq!(bench.bodies(&url).await?, ["young"]);
    Ok(())
}
