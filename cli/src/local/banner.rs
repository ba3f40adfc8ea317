//! What is said at the start: where everything is, and what to try first.

use std::io::{self, Write};
use std::path::Path;

use serde_json::json;

use crate::args::Output;

/// What a user needs to begin.
pub(super) struct Banner<'a> {
    pub(super) api: &'a str,
    pub(super) sqs: &'a str,
    /// The URLs of the queues that were asked for.
    pub(super) queues: &'a [String],
    /// `None`: in memory.
    pub(super) data: Option<&'a Path>,
    pub(super) admin_key: &'a str,
    /// Whoever gave the key knows it: it is not shown.
    pub(super) key_given: bool,
    /// Whether HTTP targets may be private addresses.
    pub(super) private_targets: bool,
}

impl Banner<'_> {
    /// Writes it to stdout; as JSON only where nothing else will be written.
    pub(super) fn show(&self, output: Output, demo: bool) -> io::Result<()> {
        match output {
            Output::Text => self.write_text(&mut io::stdout().lock()),
            Output::Json if demo => Ok(()),
            Output::Json => {
                let key = (!self.key_given).then_some(self.admin_key);
                let addresses = json!({
                    "api": self.api, "sqs": self.sqs, "queues": self.queues, "data": self.data, "admin_key": key,
                    "private_targets": self.private_targets,
                });
                let mut stdout = io::stdout().lock();
                writeln!(stdout, "{addresses}")?;
                stdout.flush()
            }
        }
    }

    fn write_text(&self, out: &mut impl Write) -> io::Result<()> {
        let Self { api, sqs, admin_key, .. } = self;
        let key = if self.key_given { "<the admin key>" } else { admin_key };
        writeln!(out, "tidegate {} runs on this machine", env!("CARGO_PKG_VERSION"))?;
        writeln!(out, "  API        {api}   (described at {api}/v1/docs)")?;
        writeln!(out, "  SQS        {sqs}   (for any AWS SDK: endpoint URL, any region and credentials)")?;
        for queue in self.queues {
            writeln!(out, "  queue      {queue}")?;
        }
        match self.data {
            Some(folder) => writeln!(out, "  data       {}", folder.display())?,
            None => writeln!(out, "  data       in memory; --data DIR keeps it")?,
        }
        let targets = match self.private_targets {
            true => "this machine and its network included; --deny-private-targets refuses them",
            false => "public addresses only",
        };
        writeln!(out, "  webhooks   {targets}")?;
        writeln!(out, "  admin key  {key}")?;
        writeln!(out, "\nRegister a client, which shows its API key:")?;
        writeln!(out, "  curl -s {api}/v1/clients -H 'authorization: Bearer {key}' \\")?;
        writeln!(out, "    -H 'content-type: application/json' -d '{{\"client_id\": \"acme\"}}'\n")?;
        out.flush()
    }
}
