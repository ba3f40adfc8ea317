//! `tidegate local`: the runtime, its two servers on loopback, and an end in good order.

pub(crate) mod backups;
mod banner;
mod key;
mod queue_urls;
mod servers;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use tidegate_engine::{PrivateTargets, Services};
use tidegate_runtime::{Durability, Options, Place, Runtime};
use tracing::info;

use crate::args::{DEFAULT_FOLDER, LocalArgs, Output};
use crate::running::Running;
use crate::{demo, kept_key, stop};
use banner::Banner;
use servers::{Listeners, Servers};

/// Runs until it is told to end, or `--for` is over. The code tells whether a demo kept its promises.
pub(crate) async fn run(args: LocalArgs) -> anyhow::Result<ExitCode> {
    let mut stop = stop::listen()?;
    let given_key = key::given(args.admin_key_file.as_deref())?;
    let key_given = given_key.is_some();
    let folder = folder(&args);
    // Ports first: whoever finds one taken leaves no folder behind.
    let listeners = Listeners::bind(args.port, args.sqs_port).await?;
    let place = folder.clone().map_or(Place::Memory, Place::Folder);
    let private_targets = if args.deny_private_targets { PrivateTargets::None } else { PrivateTargets::All };
    let durability = if args.synchronous { Durability::Machine } else { Durability::Process };
    let services = Services::on_one_machine(|name| std::env::var(name).ok());
    let (heartbeat, bus) = (args.heartbeat.clone(), args.bus.clone());
    let options = Options { durability, private_targets, services, heartbeat, bus, ..Options::new(place) };
    let runtime = Runtime::start(options).await?;
    let admin_key = key::admin_key(given_key, folder.as_deref())?;
    let owner_key = kept_key::new("tgowner_")?;
    let backups = backups::router(runtime.embedded().clone(), &owner_key);
    let servers = Servers::start(&runtime, listeners, &admin_key, backups)?;
    if let Some(folder) = &folder {
        Running { api: servers.api_url().to_owned(), owner_key }.keep(folder)?;
    }
    let mut queues = Vec::new();
    for queue in &args.queues {
        queues.push(runtime.create_queue(queue).await?);
    }
    let banner = Banner {
        api: servers.api_url(),
        sqs: servers.sqs_url(),
        queues: &queues,
        data: folder.as_deref(),
        admin_key: &admin_key,
        key_given,
        private_targets: !args.deny_private_targets,
    };
    info!(api = banner.api, sqs = banner.sqs, "ready");
    banner.show(args.output, args.demo)?;

    let ended = if args.demo {
        let stage = demo::Stage {
            api_url: servers.api_url(),
            admin_key: &admin_key,
            sqs: runtime.embedded().sqs(),
            folder: folder.as_deref(),
        };
        demo::run(&args, stage, stop).await
    } else {
        stop.asked_within(args.run_for).await;
        Ok(ExitCode::SUCCESS)
    };
    servers.stop().await;
    runtime.stop().await;
    if !args.demo && args.output == Output::Text {
        info!("stopped");
    }
    ended
}

fn folder(args: &LocalArgs) -> Option<PathBuf> {
    match &args.data {
        Some(folder) => Some(folder.clone()),
        None if args.demo => None,
        None => Some(Path::new(DEFAULT_FOLDER).to_owned()),
    }
}
