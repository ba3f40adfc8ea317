//! Large buckets: what a released event costs under policies of 10 to 10,000 tokens, and how hot their keys get.
//!
//! Counted at the seam with a run that keeps every token busy, over as many releases as it takes each slot group to come
//! back to the line. Clocks stand still, so these figures are the same on any machine.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use tidegate_domain::limits::{GRANT_EVENTS, TOKENS_PER_GROUP};
use tidegate_embedded::Usage;
use tidegate_testkit::{DISPATCH, PREFIX};

use crate::ledger::Taken;
use crate::stage::Stage;
use crate::tokens::{Together, Tokens};
use crate::{Row, midday};

/// What the fast policy of the design releases.
const RELEASES_A_SECOND: f64 = 5_000.0;
/// Long enough that no group is left without.
const RUN_EVENTS: u32 = 1_000_000;
/// The least number of releases that are counted.
const LEAST_RELEASES: u32 = 2_500;

/// Policies of 10, 1,000 and 10,000 tokens, or those of them that `most` allows.
pub(crate) async fn run(most: u32) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for limit in [10, 1_000, 10_000].into_iter().filter(|limit| *limit <= most) {
        for together in [Together::One, Together::TenOfAGroup, Together::AnyTen] {
            // Ten tokens are one group.
            if limit > TOKENS_PER_GROUP || together != Together::AnyTen {
                rows.extend(under(limit, together).await?);
            }
        }
    }
    Ok(rows)
}

async fn under(limit: u32, together: Together) -> Result<Vec<Row>> {
    let stage = Stage::open(None, midday()?).await?;
    let mut tokens = Tokens::under(&stage, "bucket", limit, RUN_EVENTS).await?;
    // Every group serves a whole range: what it takes to get the next one is then counted in its due share.
    let wanted = (limit.div_ceil(TOKENS_PER_GROUP) * GRANT_EVENTS).max(LEAST_RELEASES);
    stage.ledger.open();
    let before = stage.embedded.meter().snapshot();
    let mut released = 0;
    while released < wanted {
        released += tokens.release(together).await?;
    }
    let used = stage.embedded.meter().snapshot().since(&before);
    let keys = stage.ledger.close();
    let how = match together {
        Together::One => "one to a call",
        Together::TenOfAGroup => "ten of a slot group to a call",
        Together::AnyTen => "any ten to a call",
    };
    let what = format!("{limit} tokens, {released} events released, {how}");
    Ok(vec![
        (format!("{what}: per event"), per_event(&used, released)),
        (format!("{what}: keys"), heat(&keys, released)?),
    ])
}

fn ours(queue: &str, operation: &str) -> bool {
    queue == DISPATCH || operation.starts_with("SendMessage")
}

fn per_event(used: &Usage, released: u32) -> String {
    let per = |total: f64| total / f64::from(released);
    format!(
        "{:.3} write units, {:.3} read units, {:.3} SQS requests, {:.3} DynamoDB requests",
        per(used.write_units()),
        per(used.read_units()),
        per(used.sqs_requests_where(ours) as f64),
        per(used.dynamodb_requests() as f64),
    )
}

/// The writes on the hottest key, the line's and the run's.
fn heat(keys: &BTreeMap<String, Taken>, released: u32) -> Result<String> {
    let a_second = |total: f64| RELEASES_A_SECOND * total / f64::from(released);
    let written = keys.iter().filter(|(_, taken)| taken.writes > 0);
    let hottest = written.clone().max_by(|(_, a), (_, b)| a.write_units.total_cmp(&b.write_units));
    let (name, hottest) = hottest.context("nothing was written")?;
    let of = |is: &dyn Fn(&str) -> bool| {
        let all = keys.iter().filter(|(key, _)| is(key)).map(|(_, taken)| *taken);
        all.fold(Taken::default(), |sum, taken| Taken {
            writes: sum.writes + taken.writes,
            write_units: sum.write_units + taken.write_units,
            read_units: sum.read_units + taken.read_units,
        })
    };
    let runs = format!("{PREFIX}-runs/");
    let told = |taken: Taken| {
        format!(
            "{:.1} writes ({:.1} units), {:.1} read units",
            a_second(taken.writes.into()),
            a_second(taken.write_units),
            a_second(taken.read_units)
        )
    };
    Ok(format!(
        "a second at {RELEASES_A_SECOND} releases a second: hottest of {} keys written, '{name}': {}; the line's: {}; the run row's: {}",
        written.count(),
        told(*hottest),
        told(of(&|key| key.ends_with("|line"))),
        told(of(&|key| key.starts_with(&runs))),
    ))
}
