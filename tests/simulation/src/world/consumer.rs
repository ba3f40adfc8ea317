//! What a consumer does: take events from its queue, release and extend tokens.

use anyhow::{Context, Result};
use serde_json::value::RawValue;
use tidegate_domain::token::{SignedToken, Token};
use tidegate_engine::{Outcome, Release, Released};
use tidegate_protocol::Event;
use tidegate_testkit::queue;

use super::{CLIENT, World};

/// An event that a consumer took from its queue.
#[derive(Debug, Clone)]
pub struct Received {
    /// What the message said.
    pub body: Event<Box<RawValue>>,
    /// The token, where one is needed.
    pub token: Option<Token>,
}

impl Received {
    /// Reads a message's text.
    ///
    /// # Errors
    /// When it is no event.
    pub fn read(text: &str) -> Result<Self> {
        let body: Event<Box<RawValue>> = serde_json::from_str(text)?;
        let signed = body.token.as_deref().map(str::parse::<SignedToken>).transpose()?;
        let token = signed.map(|signed| signed.token);
        Ok(Self { body, token })
    }
}

impl World {
    /// Takes and deletes everything that can be received from a consumer's queue now.
    ///
    /// # Errors
    /// When SQS refuses or a message is no event.
    pub async fn consume(&self, queue_url: &str) -> Result<Vec<Received>> {
        let texts = queue::take_all(&self.deployment.sqs, queue_url).await?;
        texts.iter().map(|text| Received::read(text)).collect()
    }

    /// Releases tokens of [`CLIENT`] as succeeded, in one call.
    ///
    /// # Errors
    /// When the engine refuses, or an event has no token.
    pub async fn release(&self, events: &[Received]) -> Result<Vec<Released>> {
        let release = |event: &Received| {
            let token = event.token.clone().context("an event has no token")?;
            Ok(Release::new(token, Outcome::Succeeded))
        };
        let releases = events.iter().map(release).collect::<Result<_>>()?;
        let answers = self.engine.tokens().release(&CLIENT.parse()?, releases).await?;
        Ok(answers.into_iter().map(|(_, answer)| answer).collect())
    }
}
