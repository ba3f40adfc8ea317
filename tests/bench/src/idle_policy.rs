//! A policy that does nothing: what it adds to a minute when nothing waits for it, and when a run waits and no token comes
//! back.
//!
//! Counted at the seam by a clock that is moved by hand, against a minute of the same deployment without the policy.

use anyhow::{Result, bail};
use chrono::Duration;
use tidegate_domain::clock::Clock as _;
use tidegate_embedded::Usage;

use crate::stage::Stage;
use crate::tokens::{Together, Tokens};
use crate::{Row, midday};

/// Minutes after which a policy that has nothing to do is forgotten.
const SETTLING_MINUTES: u32 = 5;

/// Policies of 10, 1,000 and 10,000 tokens, or those of them that `most` allows.
pub(crate) async fn run(most: u32) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for limit in [10, 1_000, 10_000].into_iter().filter(|limit| *limit <= most) {
        rows.extend(of_one(limit).await?);
    }
    Ok(rows)
}

async fn of_one(limit: u32) -> Result<Vec<Row>> {
    let stage = Stage::open(None, midday()?).await?;
    stage.emit().await?;
    let without = minute(&stage).await?;

    let mut idle = Tokens::under(&stage, "idle", limit, limit).await?;
    while idle.count() > 0 {
        idle.release(Together::TenOfAGroup).await?;
    }
    for _ in 0..SETTLING_MINUTES {
        minute(&stage).await?;
    }
    let with_idle = minute(&stage).await?;

    let blocked = Tokens::under(&stage, "blocked", limit, 100 * limit).await?;
    for _ in 0..SETTLING_MINUTES {
        minute(&stage).await?;
    }
    let with_blocked = minute(&stage).await?;
    if blocked.count() != limit as usize {
        bail!("a token came back");
    }
    Ok(vec![
        (format!("{limit} tokens, defined and idle: a minute"), more(&with_idle, &without)),
        (format!("{limit} tokens, all held, a run waiting: a minute"), more(&with_blocked, &with_idle)),
    ])
}

/// A tick, and what it leaves to others.
async fn minute(stage: &Stage) -> Result<Usage> {
    stage.clock.set(stage.clock.now() + Duration::minutes(1));
    let before = stage.embedded.meter().snapshot();
    stage.emit().await?;
    stage.dispatch().await?;
    Ok(stage.embedded.meter().snapshot().since(&before))
}

fn more(with: &Usage, without: &Usage) -> String {
    format!(
        "{:.1} write units, {:.1} read units, {} DynamoDB requests, {} SQS requests more than without",
        with.write_units() - without.write_units(),
        with.read_units() - without.read_units(),
        i128::from(with.dynamodb_requests()) - i128::from(without.dynamodb_requests()),
        i128::from(with.sqs_requests()) - i128::from(without.sqs_requests()),
    )
}
