//! The loop between the queues of ours and the engine, one round at a time.

use anyhow::Result;
use aws_sdk_sqs::types::Message;
use tidegate_engine::message::Message as DispatchMessage;
use tidegate_testkit::queue::{self, Pumped};

use super::World;

impl World {
    /// Handles what can be received from the scan queue, then from the dispatch queue, ten at a time, until nothing comes.
    ///
    /// # Errors
    /// When SQS refuses.
    pub async fn pump(&self) -> Result<Pumped> {
        let scans = self.pump_scans().await?;
        let dispatched = self.pump_queue(self.deployment.dispatch_url()).await?;
        Ok(Pumped { done: scans.done + dispatched.done, again: scans.again + dispatched.again })
    }

    /// The same for the scan queue alone.
    ///
    /// # Errors
    /// When SQS refuses.
    pub async fn pump_scans(&self) -> Result<Pumped> {
        self.pump_queue(self.deployment.scan_url()).await
    }

    async fn pump_queue(&self, queue_url: &str) -> Result<Pumped> {
        queue::pump(&self.engine, &self.deployment.sqs, queue_url).await
    }

    /// Takes and deletes everything that can be received from the dispatch queue now.
    ///
    /// # Errors
    /// When SQS refuses, or a message is none of ours.
    pub async fn take_dispatched(&self) -> Result<Vec<DispatchMessage>> {
        let texts = queue::take_all(&self.deployment.sqs, self.deployment.dispatch_url()).await?;
        texts.iter().map(|text| Ok(DispatchMessage::decode(text)?)).collect()
    }

    /// Takes up to ten messages from the scan queue.
    ///
    /// # Errors
    /// When SQS refuses.
    pub async fn receive_scans(&self) -> Result<Vec<Message>> {
        queue::receive(&self.deployment.sqs, self.deployment.scan_url()).await
    }

    /// Deletes messages of the scan queue in one call.
    ///
    /// # Errors
    /// When SQS refuses.
    pub async fn delete_scans(&self, messages: &[Message]) -> Result<()> {
        queue::delete(&self.deployment.sqs, self.deployment.scan_url(), messages).await
    }

    /// Takes up to ten messages from the dispatch queue.
    ///
    /// # Errors
    /// When SQS refuses.
    pub async fn receive_dispatched(&self) -> Result<Vec<Message>> {
        queue::receive(&self.deployment.sqs, self.deployment.dispatch_url()).await
    }

    /// Deletes messages of the dispatch queue in one call.
    ///
    /// # Errors
    /// When SQS refuses.
    pub async fn delete_dispatched(&self, messages: &[Message]) -> Result<()> {
        queue::delete(&self.deployment.sqs, self.deployment.dispatch_url(), messages).await
    }
}
