//! How late the events of a client came, as it is answered.

use chrono::{DateTime, Utc};
use tidegate_domain::ids::ClientId;
use tidegate_domain::lateness::{HOUR, Histogram, Lateness, hour_of};
use tidegate_domain::time::{Window, seconds, shifted};
use tidegate_protocol::{ClientLateness, HourLateness, LatenessSpread};
use tidegate_store::Page;

use super::{instant, spoiled};

/// The hours that a window touches, as they are answered.
pub(crate) fn view(
    client: &ClientId,
    window: Window,
    page: Page<(DateTime<Utc>, Lateness)>,
) -> ClientLateness {
    let mut all = Lateness::default();
    page.rows.iter().for_each(|(_, lateness)| all.include(lateness));
    let hours = page.rows.iter().map(|(hour, Lateness { throttled, unthrottled })| HourLateness {
        hour: instant(*hour),
        throttled: spread(throttled),
        unthrottled: spread(unthrottled),
    });
    // The last instant of a window is not in it.
    let last = hour_of(shifted(window.to(), -seconds(1)));
    ClientLateness {
        client_id: client.to_string(),
        since: instant(hour_of(window.from())),
        until: instant(shifted(last, HOUR)),
        throttled: spread(&all.throttled),
        unthrottled: spread(&all.unthrottled),
        hours: hours.collect(),
        unreadable: spoiled::views(page.unreadable, ""),
    }
}

fn spread(histogram: &Histogram) -> LatenessSpread {
    LatenessSpread {
        events: histogram.events(),
        p50_ms: histogram.percentile(50),
        p95_ms: histogram.percentile(95),
        p99_ms: histogram.percentile(99),
        max_ms: histogram.percentile(100),
    }
}
