//! `tidegate backup`: copies the data folder of a `tidegate local`.
//!
//! The process that has the folder makes the copy; when nobody has it, this one does. Deliberately absent: how the copy is made
//! (that of the embedded services), and going back to it (`tidegate local --data` starts on a copy as on any data folder).

use std::io::{self, Write as _};
use std::path::{self, Path};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, bail, ensure};
use serde_json::{Value, json};
use tidegate_embedded::{Durability, Embedded, OpenError, holds_data};
use tidegate_engine::clock::SystemClock;

use crate::args::{BackupArgs, Output};
use crate::local::backups::{Asked, Made, PATH};
use crate::running::Running;

/// Makes the copy and says what it is.
pub(crate) async fn run(args: BackupArgs) -> anyhow::Result<ExitCode> {
    let data = &args.data;
    ensure!(holds_data(data), "{} is no data folder of tidegate local: name one with --data", data.display());
    let to = path::absolute(&args.to).context("failed to tell where the backup is to be: name a folder")?;
    let made = match Embedded::open(data, Arc::new(SystemClock), Durability::default()) {
        Ok(stopped) => stopped.back_up(&to)?.into(),
        Err(OpenError::InUse(_)) => ask(data, &to).await?,
        Err(error) => return Err(error.into()),
    };
    show(&made, &to, args.output).context("failed to write what was made")?;
    Ok(ExitCode::SUCCESS)
}

/// Asks the process that has the folder.
async fn ask(data: &Path, to: &Path) -> anyhow::Result<Made> {
    let busy = || {
        let data = data.display();
        format!(
            "{data} is in use by a process that takes no backups: wait until tidegate local is ready or tidegate repair has ended"
        )
    };
    let running = Running::read(data)?.with_context(busy)?;
    // Whoever installed a provider first is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    // Its answer comes when the copy is made, however long that takes.
    let http = reqwest::Client::builder().no_proxy().build().context("failed to set up a connection")?;
    let asked = http.post(format!("{}{PATH}", running.api)).bearer_auth(running.owner_key);
    let answer = asked.json(&Asked { folder: to.to_owned() }).send().await.with_context(busy)?;
    if answer.status().is_success() {
        return answer.json().await.context("failed to read the answer of tidegate local");
    }
    let status = answer.status();
    let problem: Value = answer.json().await.unwrap_or_default();
    match problem.get("detail").and_then(Value::as_str) {
        Some(detail) if status != reqwest::StatusCode::UNAUTHORIZED => bail!("{detail}"),
        _ => bail!("{}", busy()),
    }
}

fn show(made: &Made, to: &Path, output: Output) -> io::Result<()> {
    let Made { as_of, bytes } = made;
    let folder = to.display();
    let mut out = io::stdout().lock();
    match output {
        Output::Json => writeln!(out, "{}", json!({ "folder": to, "as_of": as_of, "bytes": bytes }))?,
        Output::Text => {
            writeln!(out, "backup    {folder}, {bytes} bytes, as of {as_of}")?;
            writeln!(out, "start it  tidegate local --data {folder}")?;
        }
    }
    out.flush()
}
