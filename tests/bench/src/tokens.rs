//! A policy under load by hand: a run that waits in its line, and the tokens of the events that came out of it.

use std::collections::{BTreeMap, VecDeque};

use anyhow::{Context, Result, bail};
use serde_json::Value;
use tidegate_domain::clock::Clock as _;
use tidegate_domain::ids::PolicyId;
use tidegate_domain::job::{Terms, Trigger};
use tidegate_domain::policy::PolicyTerms;
use tidegate_domain::token::{SignedToken, Token};
use tidegate_engine::{JobDraft, Outcome, Release, Released};
use tidegate_testkit::queue;

use crate::stage::Stage;
use crate::{client, terms};

/// The longest lease there is, in seconds: nothing runs out while it is counted.
const LEASE_SECONDS: u32 = 43_200;

/// Which tokens are released together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Together {
    /// One to a call, the oldest first.
    One,
    /// Ten of one slot group to a call.
    TenOfAGroup,
    /// Any ten to a call.
    AnyTen,
}

/// A policy with a run in its line, and what its consumer holds.
pub(crate) struct Tokens<'a> {
    stage: &'a Stage,
    queue_url: String,
    /// By slot group, the oldest first.
    held: BTreeMap<u32, VecDeque<Token>>,
    /// Groups in the order in which they are released from.
    next_group: u32,
    dice: u64,
}

impl<'a> Tokens<'a> {
    /// A policy of `limit` tokens, all of them given to a run of `events`.
    pub(crate) async fn under(stage: &'a Stage, name: &str, limit: u32, events: u32) -> Result<Self> {
        let queue_url = queue::create(stage.sqs(), name).await?;
        let policy: PolicyId = name.parse()?;
        let (client, policy_terms) = (client()?, PolicyTerms::new(limit, LEASE_SECONDS)?);
        stage.engine.policies().create(&client, policy.clone(), policy_terms).await?;
        let batch = Terms { policy: Some(policy), ..terms(&queue_url, events)? };
        let trigger = Trigger::at(stage.clock.now());
        stage.engine.jobs().create(&client, None, JobDraft::new(trigger, batch)).await?;
        stage.dispatch().await?;
        let mut tokens = Self { stage, queue_url, held: BTreeMap::new(), next_group: 0, dice: 1 };
        tokens.receive().await?;
        if tokens.count() != limit.min(events) as usize {
            bail!("{} of {limit} tokens were given", tokens.count());
        }
        Ok(tokens)
    }

    /// How many are held.
    pub(crate) fn count(&self) -> usize {
        self.held.values().map(VecDeque::len).sum()
    }

    /// Takes in what has come.
    async fn receive(&mut self) -> Result<()> {
        for text in queue::take_all(self.stage.sqs(), &self.queue_url).await? {
            let body: Value = serde_json::from_str(&text)?;
            let signed: SignedToken = body["token"].as_str().context("an event without a token")?.parse()?;
            let token = signed.token;
            self.held.entry(token.group.group).or_default().push_back(token);
        }
        Ok(())
    }

    /// One call that releases tokens, and the events that come for them; how many it released.
    pub(crate) async fn release(&mut self, together: Together) -> Result<u32> {
        let tokens = match together {
            Together::One => self.of_next_group(1),
            Together::TenOfAGroup => self.of_next_group(10),
            Together::AnyTen => (0..10).filter_map(|_| self.any()).collect(),
        };
        let count = tokens.len() as u32;
        let releases = tokens.into_iter().map(|token| Release::new(token, Outcome::Succeeded)).collect();
        let answers = self.stage.engine.tokens().release(&client()?, releases).await?;
        if answers.iter().any(|(_, answer)| *answer != Released::Released) {
            bail!("a token was not released: {answers:?}");
        }
        self.receive().await?;
        Ok(count)
    }

    /// The oldest of a group, and the group after it next time.
    fn of_next_group(&mut self, most: usize) -> Vec<Token> {
        let after = self.held.range(self.next_group..).find(|(_, tokens)| !tokens.is_empty());
        let Some(group) = after.or(self.held.iter().find(|(_, tokens)| !tokens.is_empty())) else {
            return Vec::new();
        };
        let group = *group.0;
        self.next_group = group + 1;
        let tokens = self.held.entry(group).or_default();
        tokens.drain(..most.min(tokens.len())).collect()
    }

    fn any(&mut self) -> Option<Token> {
        self.dice = self.dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let groups: Vec<u32> = self.held.iter().filter(|(_, t)| !t.is_empty()).map(|(g, _)| *g).collect();
        let group = groups.get((self.dice >> 33) as usize % groups.len().max(1))?;
        self.held.get_mut(group)?.pop_front()
    }
}
