//! What the emitter put into the dispatch queue.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use tidegate_engine::message::Message;
use tidegate_simulation::World;

/// How often each job launched at each second.
#[derive(Default)]
pub struct Emitted {
    launches: BTreeMap<String, BTreeMap<i64, u32>>,
}

impl Emitted {
    /// Takes everything that can be received now.
    pub async fn collect(&mut self, world: &World) {
        for message in world.take_dispatched().await.unwrap() {
            self.add(&message);
        }
    }

    fn add(&mut self, message: &Message) {
        let Message::Chunk(chunk) = message else { panic!("an unthrottled job made {message:?}") };
        for item in &chunk.items {
            assert_eq!((item.from, item.to), (0, 1));
            let seconds = self.launches.entry(item.job.clone()).or_default();
            *seconds.entry(chunk.launch_s).or_default() += 1;
        }
    }

    /// The launches of a job in a window, in order; one that was emitted twice is there twice.
    pub fn launches(&self, job: &str, from: DateTime<Utc>, to: DateTime<Utc>) -> Vec<DateTime<Utc>> {
        let seconds = self.launches.get(job).into_iter().flatten();
        let each = seconds.flat_map(|(second, times)| std::iter::repeat_n(*second, *times as usize));
        let instants = each.map(|second| DateTime::from_timestamp(second, 0).unwrap());
        instants.filter(|at| from <= *at && *at < to).collect()
    }
}
