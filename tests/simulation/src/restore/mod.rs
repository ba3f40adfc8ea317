//! Restores: a seeded load runs, a snapshot of each table is taken at an instant of its own, time goes on and is lost, the
//! tables are restored and repaired, and the load goes on. Then everything that was promised before the first snapshot must
//! have come true.
//!
//! Snapshots lie between any two requests of a call, in any order of the tables. What is left of the queues is drawn: all of
//! it, with what the lost time sent, or nothing. The repair is killed now and then, and made again.

mod checks;
mod load;
mod promised;
mod site;
mod snapshots;

use anyhow::{Result, ensure};
use tidegate_engine::{Repair, RepairOptions, RepairReport};

use crate::sim::Dice;
use load::Load;
use site::Site;

/// How a restore is played.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Whether the tables are repaired. Without it, something must be seen to be lost.
    pub repairs: bool,
    /// Whether all snapshots are of one instant.
    pub at_once: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { repairs: true, at_once: false }
    }
}

/// What came of a restore that held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// Events that consumers received.
    pub delivered: usize,
    /// What the repair found; `None` where there was none.
    pub report: Option<RepairReport>,
}

/// Plays the restore of a seed.
///
/// # Errors
/// When something that was promised did not hold, or the machinery fails.
pub fn play(seed: u64, options: Options) -> Result<Summary> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    runtime.block_on(play_one(seed, options))
}

async fn play_one(seed: u64, options: Options) -> Result<Summary> {
    let dice = Dice::new(seed);
    let site = Site::new(seed).await?;
    let mut load = Load::begin(&site, &dice).await?;
    load.run_for(60 + dice.below(240) as i64).await?;
    load.cut(options.at_once)?;
    load.run_until_cut().await?;
    load.lose();
    load.run_for(dice.below(120) as i64).await?;

    let purges = dice.chance(500);
    site.restore(purges).await?;
    site.advance_seconds(150 + dice.below(1_500) as i64);
    let held = checks::held_tokens(&site).await?;
    let report = if options.repairs { Some(repair(&site, &dice).await?) } else { None };
    load.resume(held).await?;
    load.run_for(240).await?;
    load.end().await?;
    Ok(Summary { delivered: load.delivered(), report })
}

/// Repairs, is killed now and then, and repairs again until there is nothing left to do.
async fn repair(site: &Site, dice: &Dice) -> Result<RepairReport> {
    let apply = RepairOptions { apply: true, ..RepairOptions::default() };
    let planned = Repair::new(site.store(), site.clock.clone()).run(RepairOptions::default()).await?;
    for _ in 0..dice.below(4) {
        site.kill_after(dice.below(120));
        let killed = Repair::new(site.store(), site.clock.clone()).run(apply).await;
        site.revive();
        site.advance_seconds(1);
        if killed.is_ok() {
            break;
        }
    }
    Repair::new(site.store(), site.clock.clone()).run(apply).await?;
    let again = Repair::new(site.store(), site.clock.clone()).run(RepairOptions::default()).await?;
    let left: Vec<_> = again.findings.iter().filter(|finding| !finding.kind.is_for_a_person()).collect();
    ensure!(left.is_empty(), "a second repair finds {left:?}; the first {:?}", planned.findings);
    Ok(planned)
}
