//! What happens now and then: leases that ran out are taken back, rows whose time is over are deleted.

use std::time::Duration;

use tidegate_embedded::Embedded;
use tidegate_engine::Engine;
use tracing::{error, info, warn};

use crate::stop::{Stop, Wait};

/// How often active policies are looked after between ticks: a lease that ran out is taken back within this time.
const WAKE_EVERY: Duration = Duration::from_secs(5);
/// How often expired rows are deleted. AWS takes days; nothing depends on it.
const SWEEP_EVERY: Duration = Duration::from_secs(600);

pub(crate) async fn wake_policies(engine: Engine, mut stop: Stop) {
    while stop.wait(WAKE_EVERY).await == Wait::Over {
        if let Err(error) = engine.emission().wake_policies().await {
            warn!(%error, "active policies are left to the next tick");
        }
    }
}

pub(crate) async fn sweep_expired(embedded: Embedded, mut stop: Stop) {
    while stop.wait(SWEEP_EVERY).await == Wait::Over {
        let embedded = embedded.clone();
        match tokio::task::spawn_blocking(move || embedded.sweep_ttl()).await {
            Ok(Ok(deleted)) => info!(deleted, "expired rows are gone"),
            Ok(Err(error)) => error!(%error, "expired rows stay until the next sweep"),
            Err(error) => error!(%error, "the sweep of expired rows died"),
        }
    }
}
