//! The loop between the queues of ours and the engine, one round at a time.

use anyhow::Result;
use aws_sdk_sqs::types::{DeleteMessageBatchRequestEntry, Message, MessageSystemAttributeName};
use tidegate_engine::Handled;
use tidegate_engine::message::Message as DispatchMessage;

use super::World;

/// What became of dispatch messages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pumped {
    /// Handled and deleted.
    pub done: usize,
    /// To come again.
    pub again: usize,
}

impl World {
    /// Handles what can be received from the scan queue, then from the dispatch queue, ten at a time, until nothing comes.
    ///
    /// # Errors
    /// When SQS refuses.
    pub async fn pump(&self) -> Result<Pumped> {
        let mut pumped = Pumped::default();
        for queue_url in [self.scan_url(), self.dispatch_url()] {
            self.pump_queue(queue_url, &mut pumped).await?;
        }
        Ok(pumped)
    }

    /// The same for the scan queue alone.
    ///
    /// # Errors
    /// When SQS refuses.
    pub async fn pump_scans(&self) -> Result<Pumped> {
        let mut pumped = Pumped::default();
        self.pump_queue(self.scan_url(), &mut pumped).await?;
        Ok(pumped)
    }

    /// Takes and deletes everything that can be received from the dispatch queue now.
    ///
    /// # Errors
    /// When SQS refuses, or a message is none of ours.
    pub async fn take_dispatched(&self) -> Result<Vec<DispatchMessage>> {
        let mut taken = Vec::new();
        loop {
            let messages = self.receive_dispatched().await?;
            if messages.is_empty() {
                return Ok(taken);
            }
            for message in &messages {
                taken.push(DispatchMessage::decode(message.body().unwrap_or_default())?);
            }
            self.delete_dispatched(&messages).await?;
        }
    }

    /// Takes up to ten messages from the scan queue.
    ///
    /// # Errors
    /// When SQS refuses.
    pub async fn receive_scans(&self) -> Result<Vec<Message>> {
        receive(&self.sqs, self.scan_url()).await
    }

    async fn pump_queue(&self, queue_url: &str, pumped: &mut Pumped) -> Result<()> {
        loop {
            let messages = receive(&self.sqs, queue_url).await?;
            if messages.is_empty() {
                return Ok(());
            }
            let texts: Vec<_> =
                messages.iter().map(|m| (m.body().unwrap_or_default(), receive_count(m))).collect();
            let handled = self.engine.handle_all(&texts).await;
            let mut done = Vec::new();
            for (message, handled) in messages.iter().zip(handled) {
                match handled {
                    Handled::Done => done.push(message.clone()),
                    Handled::Retry => pumped.again += 1,
                }
            }
            pumped.done += done.len();
            delete(&self.sqs, queue_url, &done).await?;
        }
    }

    /// Takes up to ten messages from the dispatch queue.
    ///
    /// # Errors
    /// When SQS refuses.
    pub async fn receive_dispatched(&self) -> Result<Vec<Message>> {
        receive(&self.sqs, self.dispatch_url()).await
    }

    /// Deletes messages of the dispatch queue in one call.
    ///
    /// # Errors
    /// When SQS refuses.
    pub async fn delete_dispatched(&self, messages: &[Message]) -> Result<()> {
        delete(&self.sqs, self.dispatch_url(), messages).await
    }
}

/// How often a message was received, from 1.
pub fn receive_count(message: &Message) -> u32 {
    let count =
        message.attributes().and_then(|a| a.get(&MessageSystemAttributeName::ApproximateReceiveCount));
    count.and_then(|count| count.parse().ok()).unwrap_or(1)
}

/// Takes up to ten messages, without waiting.
///
/// # Errors
/// When SQS refuses.
pub async fn receive(sqs: &aws_sdk_sqs::Client, queue_url: &str) -> Result<Vec<Message>> {
    let count = MessageSystemAttributeName::ApproximateReceiveCount;
    let call = sqs.receive_message().queue_url(queue_url).max_number_of_messages(10).wait_time_seconds(0);
    Ok(call.message_system_attribute_names(count).send().await?.messages.unwrap_or_default())
}

/// Deletes up to ten messages in one call; none, in no call.
///
/// # Errors
/// When SQS refuses.
pub async fn delete(sqs: &aws_sdk_sqs::Client, queue_url: &str, messages: &[Message]) -> Result<()> {
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
