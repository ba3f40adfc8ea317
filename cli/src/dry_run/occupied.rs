//! Which partitions of the index hold rows. Everything in the stores came from the file, so the others are known to be
//! empty, and most reads of a scan over a few thousand jobs would find nothing.

use std::collections::HashMap;

use tidegate_domain::job::{Job, Trigger};
use tidegate_domain::time::{AtMinute, Minutes, ShardRange};
use tidegate_store::Spread;
use tidegate_store::launch::{Shard, at_shard};

/// Partitions with at least one row, and how many rows they have.
#[derive(Debug, Default)]
pub(crate) struct Occupied {
    partitions: HashMap<String, u32>,
}

impl Occupied {
    /// Adds those of a job.
    pub(crate) fn add(&mut self, job: &Job) {
        let zone = job.trigger.zone();
        for place in &job.children {
            let range =
                ShardRange { launch_expression: place.key.launch_expression(), minutes: Minutes::Any };
            self.insert(&Shard::Expression { zone, range, shard: place.shard });
        }
        if let Trigger::At(instants) = &job.trigger {
            let shard = at_shard(&job.client, &job.id, Spread::default());
            for minute in instants.iter().map(AtMinute::of) {
                self.insert(&Shard::Minutes { first: minute, last: minute, shard });
            }
        }
    }

    fn insert(&mut self, shard: &Shard) {
        *self.partitions.entry(shard.partition()).or_default() += 1;
    }

    /// Whether a read can find anything.
    pub(crate) fn holds(&self, shard: &Shard) -> bool {
        self.partitions.contains_key(&shard.partition())
    }

    /// The partition with most rows, and how many it has.
    pub(crate) fn largest(&self) -> Option<(String, f64)> {
        let largest = self.partitions.iter().max_by_key(|(partition, rows)| (**rows, *partition));
        largest.map(|(partition, rows)| (partition.clone(), f64::from(*rows)))
    }
}
