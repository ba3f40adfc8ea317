//! Batch calls: their own checks, and entries that fail alone.

use aws_sdk_sqs::error::BuildError;
use aws_sdk_sqs::types::{
    ChangeMessageVisibilityBatchRequestEntry as ChangeEntry, DeleteMessageBatchRequestEntry as DeleteEntry,
    QueueAttributeName as Name, SendMessageBatchRequestEntry as SendEntry,
};

use crate::bench::{Bench, Outcome, receipt, refusal};

fn entry(id: &str, body: &str) -> Result<SendEntry, BuildError> {
    SendEntry::builder().id(id).message_body(body).build()
}

fn entries(bodies: &[&str]) -> Result<Vec<SendEntry>, BuildError> {
    bodies.iter().enumerate().map(|(index, body)| entry(&format!("e{index}"), body)).collect()
}

/// Ten sent, ten received at once, ten deleted.
pub async fn ten_messages_travel_in_one_batch(bench: &Bench) -> Outcome {
    let url = bench.queue("ten", &[(Name::VisibilityTimeout, "1")]).await?;
    let bodies = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"];
    let sent =
        bench.client.send_message_batch().queue_url(&url).set_entries(Some(entries(&bodies)?)).send().await?;
    assert_eq!(sent.failed(), []);
    let ids: Vec<&str> = sent.successful().iter().map(|sent| sent.id()).collect();
    assert_eq!(ids, ["e0", "e1", "e2", "e3", "e4", "e5", "e6", "e7", "e8", "e9"]);
    assert_eq!(sent.successful()[1].md5_of_message_body(), "c4ca4238a0b923820dcc509a6f75849b");
    let messages = bench.receive(&url).await?;
    let mut received: Vec<&str> = messages.iter().filter_map(|message| message.body()).collect();
    received.sort_unstable();
    assert_eq!(received, bodies);
    let mut delete = bench.client.delete_message_batch().queue_url(&url);
    for (index, message) in messages.iter().enumerate() {
        delete = delete
            .entries(DeleteEntry::builder().id(index.to_string()).receipt_handle(receipt(message)).build()?);
    }
    let deleted = delete.send().await?;
    assert_eq!((deleted.successful().len(), deleted.failed().len()), (10, 0));
    bench.passage.pass(1).await;
    assert_eq!(bench.bodies(&url).await?, Vec::<String>::new());
    Ok(())
}

/// Empty, too many, repeated and malformed ids.
pub async fn batches_are_checked(bench: &Bench) -> Outcome {
    let url = bench.queue("batches", &[]).await?;
    let eleven = entries(&["x"; 11])?;
    let twice = vec![entry("same", "x")?, entry("same", "y")?];
    let malformed = vec![entry("with space", "x")?];
    for (entries, code) in [
        (Vec::new(), "AWS.SimpleQueueService.EmptyBatchRequest"),
        (eleven, "AWS.SimpleQueueService.TooManyEntriesInBatchRequest"),
        (twice, "AWS.SimpleQueueService.BatchEntryIdsNotDistinct"),
        (malformed, "AWS.SimpleQueueService.InvalidBatchEntryId"),
    ] {
        let send = bench.client.send_message_batch().queue_url(&url).set_entries(Some(entries));
        assert_eq!(refusal(send.send().await)?, code);
    }
    let delete = bench.client.delete_message_batch().queue_url(&url).set_entries(Some(Vec::new()));
    assert_eq!(refusal(delete.send().await)?, "AWS.SimpleQueueService.EmptyBatchRequest");
    assert_eq!(bench.bodies(&url).await?, Vec::<String>::new());
    Ok(())
}

/// All messages of a batch together.
pub async fn a_batch_may_have_one_mebibyte(bench: &Bench) -> Outcome {
    let url = bench.queue("full", &[]).await?;
    let half = "x".repeat(512 * 1024);
    let send = |bodies: &[&str]| {
        let entries = entries(bodies);
        entries.map(|entries| bench.client.send_message_batch().queue_url(&url).set_entries(Some(entries)))
    };
    assert_eq!(send(&[&half, &half])?.send().await?.successful().len(), 2);
    let refused = send(&[&half, &half, "x"])?.send().await;
    assert_eq!(refusal(refused)?, "AWS.SimpleQueueService.BatchRequestTooLong");
    Ok(())
}

/// A bad message is reported beside the good ones.
pub async fn one_bad_entry_fails_alone(bench: &Bench) -> Outcome {
    let url = bench.queue("partial", &[]).await?;
    let send = bench.client.send_message_batch().queue_url(&url).entries(entry("good", "good")?);
    let sent = send.entries(entry("bad", "\u{1}")?).send().await?;
    assert_eq!(sent.successful().iter().map(|sent| sent.id()).collect::<Vec<_>>(), ["good"]);
    let failed: Vec<_> =
        sent.failed().iter().map(|failed| (failed.id(), failed.code(), failed.sender_fault())).collect();
    assert_eq!(failed, [("bad", "InvalidMessageContents", true)]);
    assert_eq!(bench.bodies(&url).await?, ["good"]);
    Ok(())
}

/// `DeleteMessageBatch` with a bad handle.
pub async fn deletes_fail_alone(bench: &Bench) -> Outcome {
    let url = bench.queue("partial-delete", &[]).await?;
    bench.send(&url, "x").await?;
    let message = bench.receive_one(&url).await?;
    let delete = bench.client.delete_message_batch().queue_url(&url);
    let delete = delete.entries(DeleteEntry::builder().id("bad").receipt_handle("garbage").build()?);
    let deleted = delete
        .entries(DeleteEntry::builder().id("good").receipt_handle(receipt(&message)).build()?)
        .send()
        .await?;
    assert_eq!(deleted.successful().iter().map(|done| done.id()).collect::<Vec<_>>(), ["good"]);
    let failed: Vec<_> =
        deleted.failed().iter().map(|failed| (failed.id(), failed.code(), failed.sender_fault())).collect();
    assert_eq!(failed, [("bad", "ReceiptHandleIsInvalid", true)]);
    Ok(())
}

fn change(id: &str, handle: &str, timeout_s: i32) -> Result<ChangeEntry, BuildError> {
    ChangeEntry::builder().id(id).receipt_handle(handle).visibility_timeout(timeout_s).build()
}

/// `ChangeMessageVisibilityBatch` with a bad handle.
pub async fn visibility_changes_fail_alone(bench: &Bench) -> Outcome {
    let url = bench.queue("partial-change", &[]).await?;
    bench.send(&url, "a").await?;
    let message = bench.receive_one(&url).await?;
    let batch = bench.client.change_message_visibility_batch().queue_url(&url);
    let changed = batch
        .entries(change("good", receipt(&message), 0)?)
        .entries(change("bad", "garbage", 0)?)
        .send()
        .await?;
    assert_eq!(changed.successful().iter().map(|done| done.id()).collect::<Vec<_>>(), ["good"]);
    let failed: Vec<_> = changed.failed().iter().map(|failed| (failed.id(), failed.code())).collect();
    assert_eq!(failed, [("bad", "ReceiptHandleIsInvalid")]);
    assert_eq!(bench.bodies(&url).await?, ["a"]);
    Ok(())
}

/// Delays and timeouts out of range fail their entry.
pub async fn times_out_of_range_fail_alone(bench: &Bench) -> Outcome {
    let url = bench.queue("partial-times", &[]).await?;
    let late = SendEntry::builder().id("late").message_body("x").delay_seconds(901).build()?;
    let sent =
        bench.client.send_message_batch().queue_url(&url).entries(entry("good", "good")?).entries(late);
    let sent = sent.send().await?;
    let failed: Vec<_> = sent.failed().iter().map(|failed| (failed.id(), failed.code())).collect();
    assert_eq!(failed, [("late", "InvalidParameterValue")]);
    let message = bench.receive_one(&url).await?;
    let batch = bench.client.change_message_visibility_batch().queue_url(&url);
    let changed = batch.entries(change("long", receipt(&message), 43_201)?).send().await?;
    let failed: Vec<_> = changed.failed().iter().map(|failed| (failed.id(), failed.code())).collect();
    assert_eq!(failed, [("long", "InvalidParameterValue")]);
    Ok(())
}
