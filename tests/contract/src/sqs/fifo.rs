//! FIFO queues: order, groups, deduplication.

use aws_sdk_sqs::types::{
    DeleteMessageBatchRequestEntry, MessageSystemAttributeName as System, QueueAttributeName as Name,
    SendMessageBatchRequestEntry,
};

use crate::bench::{Bench, Outcome, receipt, refusal};

/// In the order of the sends, batches included, with what a consumer is told of the line.
pub async fn a_group_is_received_in_order(bench: &Bench) -> Outcome {
    let url = bench.queue("order.fifo", &[]).await?;
    let mut batch = bench.client.send_message_batch().queue_url(&url);
    for body in ["1", "2", "3"] {
        let entry = SendMessageBatchRequestEntry::builder().id(body).message_body(body).message_group_id("g");
        batch = batch.entries(entry.message_deduplication_id(body).build()?);
    }
    assert_eq!(batch.send().await?.failed(), []);
    bench.send_fifo(&url, "g", "4").await?;
    let receive = bench.client.receive_message().queue_url(&url).max_number_of_messages(10);
    let received = receive.message_system_attribute_names(System::All).send().await?;
    let bodies: Vec<_> = received.messages().iter().filter_map(|message| message.body()).collect();
    assert_eq!(bodies, ["1", "2", "3", "4"]);
    let attributes = received.messages()[0].attributes().ok_or("no attributes")?;
    assert_eq!(attributes.get(&System::MessageGroupId).map(String::as_str), Some("g"));
    assert_eq!(attributes.get(&System::MessageDeduplicationId).map(String::as_str), Some("1"));
    assert!(attributes.contains_key(&System::SequenceNumber));
    Ok(())
}

/// While a message of a group is in flight, the group gives no other; other groups do. A delete frees it.
pub async fn a_group_in_flight_blocks_only_itself(bench: &Bench) -> Outcome {
    let url = bench.queue("blocked.fifo", &[]).await?;
    for (group, body) in [("a", "a1"), ("a", "a2"), ("b", "b1")] {
        bench.send_fifo(&url, group, body).await?;
    }
    let mut taken = Vec::new();
    for _ in 0..2 {
        let received =
            bench.client.receive_message().queue_url(&url).max_number_of_messages(1).send().await?;
        taken.extend(received.messages.unwrap_or_default());
    }
    taken.sort_unstable_by(|a, b| a.body().cmp(&b.body()));
    assert_eq!(taken.iter().map(|message| message.body()).collect::<Vec<_>>(), [Some("a1"), Some("b1")]);
    assert_eq!(bench.bodies(&url).await?, Vec::<String>::new());
    bench.delete(&url, &taken[0]).await?;
    assert_eq!(bench.bodies(&url).await?, ["a2"]);
    Ok(())
}

/// After a visibility timeout, or its end by hand, the line is as it was.
pub async fn a_group_comes_back_in_order(bench: &Bench) -> Outcome {
    let url = bench.queue("again.fifo", &[(Name::VisibilityTimeout, "1")]).await?;
    for body in ["1", "2", "3"] {
        bench.send_fifo(&url, "g", body).await?;
    }
    let taken = bench.client.receive_message().queue_url(&url).max_number_of_messages(2).send().await?;
    assert_eq!(taken.messages().len(), 2);
    assert_eq!(bench.bodies(&url).await?, Vec::<String>::new());
    bench.passage.pass(1).await;
    let messages = bench.receive(&url).await?;
    assert_eq!(messages.iter().filter_map(|message| message.body()).collect::<Vec<_>>(), ["1", "2", "3"]);
    for message in &messages {
        let change =
            bench.client.change_message_visibility().queue_url(&url).receipt_handle(receipt(message));
        change.visibility_timeout(0).send().await?;
    }
    assert_eq!(bench.bodies(&url).await?, ["1", "2", "3"]);
    Ok(())
}

/// The same deduplication id is the same message, also within a batch.
pub async fn a_repeated_send_is_sent_once(bench: &Bench) -> Outcome {
    let url = bench.queue("once.fifo", &[]).await?;
    let send = |body: &str| {
        let send = bench.client.send_message().queue_url(&url).message_body(body).message_group_id("g");
        send.message_deduplication_id("same").send()
    };
    let first = send("first").await?;
    let second = send("second").await?;
    assert_eq!(second.message_id(), first.message_id());
    assert_eq!(second.sequence_number(), first.sequence_number());
    let entry = |id: &str| {
        let entry =
            SendMessageBatchRequestEntry::builder().id(id).message_body("third").message_group_id("g");
        entry.message_deduplication_id("other").build()
    };
    let batch = bench.client.send_message_batch().queue_url(&url).entries(entry("a")?).entries(entry("b")?);
    let batch = batch.send().await?;
    assert_eq!(batch.successful().len(), 2);
    assert_eq!(batch.successful()[0].message_id(), batch.successful()[1].message_id());
    assert_eq!(bench.bodies(&url).await?, ["first", "third"]);
    Ok(())
}

/// `ContentBasedDeduplication`.
pub async fn equal_bodies_are_sent_once_when_asked(bench: &Bench) -> Outcome {
    let url = bench.queue("content.fifo", &[(Name::ContentBasedDeduplication, "true")]).await?;
    for body in ["same", "same", "other"] {
        bench.client.send_message().queue_url(&url).message_body(body).message_group_id("g").send().await?;
    }
    assert_eq!(bench.bodies(&url).await?, ["same", "other"]);
    Ok(())
}

/// An id counts for five minutes, whatever became of its message.
pub async fn deduplication_outlives_the_message_and_ends(bench: &Bench) -> Outcome {
    let url = bench.queue("window.fifo", &[]).await?;
    bench.send_fifo(&url, "g", "x").await?;
    let message = bench.receive_one(&url).await?;
    bench.delete(&url, &message).await?;
    bench.send_fifo(&url, "g", "x").await?;
    assert_eq!(bench.bodies(&url).await?, Vec::<String>::new());
    bench.passage.pass(5 * 60).await;
    bench.send_fifo(&url, "g", "x").await?;
    assert_eq!(bench.bodies(&url).await?, ["x"]);
    Ok(())
}

/// A group and a deduplication id are needed; a delay is refused.
pub async fn what_fifo_needs_is_checked(bench: &Bench) -> Outcome {
    let url = bench.queue("needs.fifo", &[]).await?;
    let send = || bench.client.send_message().queue_url(&url).message_body("x");
    assert_eq!(refusal(send().message_deduplication_id("x").send().await)?, "MissingParameter");
    assert_eq!(refusal(send().message_group_id("g").send().await)?, "InvalidParameterValue");
    let delayed = send().message_group_id("g").message_deduplication_id("x").delay_seconds(1);
    assert_eq!(refusal(delayed.send().await)?, "InvalidParameterValue");
    Ok(())
}

/// Unlike on a standard queue, a receipt is of no use after its timeout.
pub async fn an_expired_receipt_deletes_nothing(bench: &Bench) -> Outcome {
    let url = bench.queue("expired.fifo", &[(Name::VisibilityTimeout, "1")]).await?;
    bench.send_fifo(&url, "g", "x").await?;
    let message = bench.receive_one(&url).await?;
    bench.passage.pass(1).await;
    let delete = bench.client.delete_message().queue_url(&url).receipt_handle(receipt(&message));
    assert_eq!(refusal(delete.send().await)?, "InvalidParameterValue");
    let entry =
        DeleteMessageBatchRequestEntry::builder().id("x").receipt_handle(receipt(&message)).build()?;
    let batch = bench.client.delete_message_batch().queue_url(&url).entries(entry).send().await?;
    let failed: Vec<_> = batch.failed().iter().map(|failed| (failed.id(), failed.code())).collect();
    assert_eq!(failed, [("x", "ReceiptHandleIsInvalid")]);
    assert_eq!(bench.bodies(&url).await?, ["x"]);
    Ok(())
}

/// `DelaySeconds` of the queue works, in order.
pub async fn a_fifo_queue_delays_as_a_whole(bench: &Bench) -> Outcome {
    let url = bench.queue("delay.fifo", &[(Name::DelaySeconds, "1")]).await?;
    bench.send_fifo(&url, "g", "1").await?;
    bench.send_fifo(&url, "g", "2").await?;
    assert_eq!(bench.bodies(&url).await?, Vec::<String>::new());
    bench.passage.pass(1).await;
    assert_eq!(bench.bodies(&url).await?, ["1", "2"]);
    Ok(())
}

/// Within a group, as numbers.
pub async fn sequence_numbers_rise(bench: &Bench) -> Outcome {
    let url = bench.queue("sequence.fifo", &[]).await?;
    let mut numbers = Vec::new();
    for body in ["1", "2", "3"] {
        let send = bench.client.send_message().queue_url(&url).message_body(body).message_group_id("g");
        let sent = send.message_deduplication_id(body).send().await?;
        numbers.push(sent.sequence_number().unwrap_or_default().parse::<u128>()?);
    }
    assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
    Ok(())
}
