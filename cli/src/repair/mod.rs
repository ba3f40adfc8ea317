//! `tidegate repair`: brings tables together again that were restored from snapshots of different instants.
//!
//! On AWS it reaches the tables as the AWS CLI does; in a folder of `tidegate local` nobody else can be at work. Deliberately
//! absent: what is repaired, and how (the engine's).

mod json;
mod text;

use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, bail, ensure};
use chrono::TimeDelta;
use tidegate_engine::clock::SystemClock;
use tidegate_engine::{Repair, RepairOptions};
use tidegate_store::Store;

use crate::args::{Output, RepairArgs};

/// Says what is to be repaired, and does it if it is asked to.
pub(crate) async fn run(args: RepairArgs) -> anyhow::Result<ExitCode> {
    let (store, name) = match (&args.data, &args.table_prefix) {
        (Some(folder), _) => (in_folder(folder).await?, folder.display().to_string()),
        (None, Some(prefix)) => (on_aws(prefix).await?, format!("{prefix}-*")),
        (None, None) => bail!("name the tables: --table-prefix, or --data for a folder of tidegate local"),
    };
    let look_back = TimeDelta::from_std(args.look_back).context("--look-back is too long")?;
    let options = RepairOptions {
        apply: args.apply,
        restored_to: args.restored_to,
        look_back,
        // The lock of a folder says that nobody else is at work.
        while_running: args.while_running || args.data.is_some(),
    };
    let report = Repair::new(store, Arc::new(SystemClock)).run(options).await?;
    let mut out = io::stdout().lock();
    let written = match args.output {
        Output::Text => text::write(&report, &name, &mut out),
        Output::Json => json::write(&report, &name, &mut out),
    };
    written.and_then(|()| out.flush()).context("failed to write the report")?;
    Ok(ExitCode::SUCCESS)
}

/// The tables of a folder, which must be there: none is made.
async fn in_folder(folder: &Path) -> anyhow::Result<Store> {
    ensure!(folder.is_dir(), "there is no folder {}", folder.display());
    Ok(tidegate_runtime::tables_in(folder).await?)
}

async fn on_aws(prefix: &str) -> anyhow::Result<Store> {
    let store = tidegate_aws::tables(prefix).await;
    store.context("no region is named: set AWS_REGION, or AWS_PROFILE to a profile that has one")
}
