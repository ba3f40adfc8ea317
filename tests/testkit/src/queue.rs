//! Queues polled by hand: nothing waits, and nothing is taken that is not there now.

use anyhow::{Context, Result};
use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::{
    DeleteMessageBatchRequestEntry, Message, MessageSystemAttributeName, QueueAttributeName,
};
use tidegate_engine::{Engine, Handled};

/// What became of messages of ours.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pumped {
    /// Handled and deleted.
    pub done: usize,
    /// To come again.
    pub again: usize,
}

/// Creates a standard queue whose messages stay hidden for as long as in the template, where it is missing; its URL.
///
/// # Errors
/// When SQS refuses.
pub async fn create(sqs: &Client, name: &str) -> Result<String> {
    let create = sqs.create_queue().queue_name(name).attributes(QueueAttributeName::VisibilityTimeout, "180");
    create.send().await?.queue_url.context("failed to read the URL of a new queue")
}

/// Takes up to ten messages, without waiting.
///
/// # Errors
/// When SQS refuses.
pub async fn receive(sqs: &Client, queue_url: &str) -> Result<Vec<Message>> {
    let count = MessageSystemAttributeName::ApproximateReceiveCount;
    let call = sqs.receive_message().queue_url(queue_url).max_number_of_messages(10).wait_time_seconds(0);
    Ok(call.message_system_attribute_names(count).send().await?.messages.unwrap_or_default())
}

/// How often a message was received, from 1.
pub fn receive_count(message: &Message) -> u32 {
    let count =
        message.attributes().and_then(|a| a.get(&MessageSystemAttributeName::ApproximateReceiveCount));
    count.and_then(|count| count.parse().ok()).unwrap_or(1)
}

/// Deletes up to ten messages in one call; none, in no call.
///
/// # Errors
/// When SQS refuses.
pub async fn delete(sqs: &Client, queue_url: &str, messages: &[Message]) -> Result<()> {
    if messages.is_empty() {
        return Ok(());
    }
    let mut call = sqs.delete_message_batch().queue_url(queue_url);
    for (number, message) in messages.iter().enumerate() {
        let handle = message.receipt_handle().unwrap_or_default();
        let entry = DeleteMessageBatchRequestEntry::builder().id(number.to_string()).receipt_handle(handle);
        call = call.entries(entry.build()?);
    }
    call.send().await?;
    Ok(())
}

/// Takes and deletes everything that can be received now; the texts of the messages.
///
/// # Errors
/// When SQS refuses.
pub async fn take_all(sqs: &Client, queue_url: &str) -> Result<Vec<String>> {
    let mut texts = Vec::new();
    loop {
        let messages = receive(sqs, queue_url).await?;
        if messages.is_empty() {
            return Ok(texts);
        }
        texts.extend(messages.iter().map(|message| message.body().unwrap_or_default().to_owned()));
        delete(sqs, queue_url, &messages).await?;
    }
}

/// Has an engine handle what can be received from a queue of ours, ten messages at a time, until nothing comes. What it
/// handled is deleted.
///
/// # Errors
/// When SQS refuses.
pub async fn pump(engine: &Engine, sqs: &Client, queue_url: &str) -> Result<Pumped> {
    let mut pumped = Pumped::default();
    loop {
        let messages = receive(sqs, queue_url).await?;
        if messages.is_empty() {
            return Ok(pumped);
        }
        let texts: Vec<_> =
            messages.iter().map(|m| (m.body().unwrap_or_default(), receive_count(m))).collect();
        let handled = engine.handle_all(&texts).await;
        let mut done = Vec::new();
        for (message, handled) in messages.into_iter().zip(handled) {
            match handled {
                Handled::Done => done.push(message),
                Handled::Retry => pumped.again += 1,
            }
        }
        pumped.done += done.len();
        delete(sqs, queue_url, &done).await?;
    }
}
