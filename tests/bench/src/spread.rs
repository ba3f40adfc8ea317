//! How evenly the instants of one minute lie over the partitions of the time index: a write each.

use anyhow::Result;
use chrono::{DateTime, Utc};
use tidegate_domain::limits::AT_SHARDS;
use tidegate_domain::time::{AtMinute, Window};
use tidegate_engine::Engine;
use tidegate_store::launch::{Shard, at_shard};

use crate::client;

/// Rows by partition key.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spread {
    /// In the fullest.
    pub(crate) most: u32,
    /// Over how many.
    pub(crate) partitions: u32,
}

impl Spread {
    fn of(rows: &[u32]) -> Self {
        Self { most: rows.iter().copied().max().unwrap_or(0), partitions: rows.len() as u32 }
    }
}

/// The rows of a minute, as they are stored.
pub(crate) async fn of_rows(engine: &Engine, launch_at: DateTime<Utc>) -> Result<Spread> {
    let minute = AtMinute::of(launch_at).starts_at();
    let window = Window::new(minute, minute + chrono::Duration::minutes(1))?;
    let mut rows = Vec::new();
    for shard in Shard::instants(window, tidegate_store::Spread::default()) {
        let (mut count, mut after) = (0, None);
        loop {
            let page = engine.store().children(&shard, after).await?;
            count += page.rows.len() as u32;
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        rows.push(count);
    }
    Ok(Spread::of(&rows))
}

/// Where jobs go whose names are `job_0000000` and so on.
pub(crate) fn of_names(jobs: u32) -> Result<Spread> {
    let (client, mut rows) = (client()?, [0; AT_SHARDS as usize]);
    for number in 0..jobs {
        let shard =
            at_shard(&client, &format!("job_{number:07}").parse()?, tidegate_store::Spread::default());
        rows[shard as usize] += 1;
    }
    Ok(Spread::of(&rows))
}
