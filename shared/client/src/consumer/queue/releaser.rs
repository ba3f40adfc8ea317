//! Ending what was worked on: releases tokens, many by one call, and then deletes their messages.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tidegate_protocol::Release;
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::messages::{Message, Queue};
use crate::consumer::calls::Calls;
use crate::consumer::limits;
use crate::consumer::periodic::Kept;
use crate::consumer::releases::send_releases;

/// A message that is to be deleted, when its token has been released if it has one.
pub(super) struct Finished {
    pub(super) release: Option<Release>,
    pub(super) message: Message,
    /// It stays invisible meanwhile.
    pub(super) _invisible: Kept<Message>,
}

/// Collects what is finished for a moment, and ends it together.
pub(super) struct Releaser {
    calls: Arc<Calls>,
    queue: Arc<dyn Queue>,
    linger: Duration,
    finished: mpsc::Receiver<Finished>,
}

impl Releaser {
    /// The sender takes a call's worth, and waits when that is waiting, so that memory is bounded.
    pub(super) fn new(
        calls: &Arc<Calls>,
        queue: &Arc<dyn Queue>,
        linger: Duration,
    ) -> (mpsc::Sender<Finished>, Self) {
        let (sender, finished) = mpsc::channel(limits::TOKENS_PER_CALL);
        (sender, Self { calls: Arc::clone(calls), queue: Arc::clone(queue), linger, finished })
    }

    /// Ends what comes. When all senders are gone, ends what is left without delay, and returns.
    pub(super) async fn run(mut self) {
        while let Some(batch) = self.next_batch().await {
            self.end(batch).await;
        }
    }

    async fn next_batch(&mut self) -> Option<Vec<Finished>> {
        let mut batch = vec![self.finished.recv().await?];
        let mut lingering = pin!(sleep(self.linger));
        while batch.len() < limits::TOKENS_PER_CALL {
            tokio::select! {
                biased;
                finished = self.finished.recv() => match finished {
                    Some(finished) => batch.push(finished),
                    None => break,
                },
                () = &mut lingering => break,
            }
        }
        Some(batch)
    }

    /// Deletes the messages whose releases were accepted. The others become visible again.
    async fn end(&self, batch: Vec<Finished>) {
        let releases: Vec<Release> = batch.iter().filter_map(|finished| finished.release.clone()).collect();
        let accepted =
            if releases.is_empty() { Vec::new() } else { send_releases(&self.calls, &releases, None).await };
        let mut accepted = accepted.into_iter();
        let mut settled = Vec::new();
        for finished in &batch {
            if finished.release.is_none() || accepted.next() == Some(true) {
                settled.push(finished.message.clone());
            }
        }
        if !settled.is_empty() {
            self.queue.delete(&settled).await;
        }
    }
}
