//! The tick loop: at the start, then as each minute begins. Stands in for the schedule that calls the emitter.

use std::time::Duration;

use tidegate_engine::Engine;
use tracing::{debug, error};

use crate::stop::{Stop, Wait};

/// After how long a tick that failed is repeated.
const REPEAT: Duration = Duration::from_secs(1);
/// How long the loop waits without a look at the clock: a clock that was set, or slept with its machine, is noticed then.
const LOOK_AGAIN: Duration = Duration::from_secs(2);

pub(crate) async fn tick_each_minute(engine: Engine, mut stop: Stop) {
    loop {
        let ticked_in = minute(&engine);
        match engine.tick().await {
            Ok(report) => debug!(?report, "ticked"),
            Err(error) => {
                error!(%error, "a tick failed and is repeated");
                if stop.wait(REPEAT).await == Wait::Stopped {
                    return;
                }
                continue;
            }
        }
        while minute(&engine) == ticked_in {
            let left_ms = 60_000 - engine.clock().now().timestamp_millis().rem_euclid(60_000);
            let left = Duration::from_millis(left_ms.unsigned_abs());
            if stop.wait(left.min(LOOK_AGAIN)).await == Wait::Stopped {
                return;
            }
        }
    }
}

/// The present minute since the epoch.
fn minute(engine: &Engine) -> i64 {
    engine.clock().now().timestamp().div_euclid(60)
}
