//! What tables and partitions take in a second.
//!
//! A bucket holds what one second brings. A request is let in while its buckets are not empty, and is charged afterwards,
//! when its units are known: a bucket may owe something then, and nobody is let in until it does not.

use std::collections::HashMap;

use tidegate_testkit::ItemKey;
use tokio::time::Instant;

use crate::limits::{
    COLD_TABLE_READS, COLD_TABLE_WRITES, PARTITION_READS, PARTITION_WRITES, SHORT_AGAIN, SPLIT_AFTER,
    TABLE_GROWTH, TABLE_GROWTH_TIME,
};

/// Units of either kind.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Units {
    pub(crate) write: f64,
    pub(crate) read: f64,
}

/// What one second brings, of one kind of unit.
#[derive(Debug)]
struct Bucket {
    per_second: f64,
    left: f64,
    filled_at: Instant,
    /// Since when it was asked for more than it had, again and again.
    short_since: Option<Instant>,
    last_short: Instant,
}

impl Bucket {
    fn new(per_second: f64, now: Instant) -> Self {
        Self { per_second, left: per_second, filled_at: now, short_since: None, last_short: now }
    }

    fn fill(&mut self, now: Instant) {
        let passed = now.duration_since(self.filled_at).as_secs_f64();
        self.left = (self.left + passed * self.per_second).min(self.per_second);
        self.filled_at = now;
    }

    fn has_some(&mut self, now: Instant) -> bool {
        self.fill(now);
        if self.left > 0.0 {
            return true;
        }
        let goes_on = now.duration_since(self.last_short) < SHORT_AGAIN;
        self.short_since = self.short_since.filter(|_| goes_on).or(Some(now));
        self.last_short = now;
        false
    }

    /// Splits the partition that has been too small for a while.
    fn split_if_short(&mut self, now: Instant) {
        if self.short_since.is_some_and(|since| now.duration_since(since) >= SPLIT_AFTER) {
            self.per_second *= 2.0;
            self.short_since = None;
        }
    }
}

/// The buckets of a table, or of a partition.
#[derive(Debug)]
struct Pair {
    writes: Bucket,
    reads: Bucket,
}

impl Pair {
    fn new(writes: f64, reads: f64, now: Instant) -> Self {
        Self { writes: Bucket::new(writes, now), reads: Bucket::new(reads, now) }
    }

    fn has_some(&mut self, writes: bool, now: Instant) -> bool {
        if writes { self.writes.has_some(now) } else { self.reads.has_some(now) }
    }

    fn charge(&mut self, units: Units) {
        self.writes.left -= units.write;
        self.reads.left -= units.read;
    }
}

/// A table: what it takes, and the peaks by which it grows.
#[derive(Debug)]
struct TableLimit {
    pair: Pair,
    /// Units of the second that is under way, and the highest of all seconds of this span.
    second: (u64, Units),
    peak: Units,
    span_began: Instant,
}

/// A partition: what it takes, and the units of the second that is under way.
#[derive(Debug)]
struct Partition {
    pair: Pair,
    second: (u64, Units),
}

/// The most that one key took in a second.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Hottest {
    /// `table/partition key`.
    pub key: String,
    /// Its units in that second.
    pub units: f64,
}

/// All tables and partitions of a region.
#[derive(Debug)]
pub(crate) struct Capacity {
    began: Instant,
    splits: bool,
    warm: Option<Units>,
    tables: HashMap<String, TableLimit>,
    partitions: HashMap<String, HashMap<String, Partition>>,
    hottest_writes: Hottest,
    hottest_reads: Hottest,
    pub(crate) throttled: u64,
}

impl Capacity {
    /// Tables that are new, or that take so much as they begin (`warm`). With `splits`, a partition that is too small for
    /// a while is split.
    pub(crate) fn new(warm: Option<Units>, splits: bool) -> Self {
        Self {
            began: Instant::now(),
            splits,
            warm,
            tables: HashMap::new(),
            partitions: HashMap::new(),
            hottest_writes: Hottest::default(),
            hottest_reads: Hottest::default(),
            throttled: 0,
        }
    }

    /// Whether a request for this item is let in.
    pub(crate) fn admits(&mut self, key: &ItemKey, writes: bool) -> bool {
        let (now, splits) = (Instant::now(), self.splits);
        let table = self.table(&key.table, now);
        let of_table = table.pair.has_some(writes, now);
        let pair = &mut self.partition(key, now).pair;
        let of_partition = pair.has_some(writes, now);
        if splits {
            pair.writes.split_if_short(now);
            pair.reads.split_if_short(now);
        }
        if !(of_table && of_partition) {
            self.throttled += 1;
        }
        of_table && of_partition
    }

    /// Which items of a batch are let in: as many as a bucket has at least a unit for, or half a one for a read.
    pub(crate) fn admits_each(&mut self, keys: &[ItemKey], writes: bool) -> Vec<bool> {
        let of_one = if writes { Units { write: 1.0, read: 0.0 } } else { Units { write: 0.0, read: 0.5 } };
        let mut taken = Vec::new();
        let admitted = keys.iter().map(|key| {
            let is_admitted = self.admits(key, writes);
            if is_admitted {
                self.take(key, of_one);
                taken.push(key);
            }
            is_admitted
        });
        let admitted = admitted.collect();
        // The request pays afterwards what it really took.
        for key in taken {
            self.take(key, Units { write: -of_one.write, read: -of_one.read });
        }
        admitted
    }

    fn take(&mut self, key: &ItemKey, units: Units) {
        let now = Instant::now();
        self.table(&key.table, now).pair.charge(units);
        self.partition(key, now).pair.charge(units);
    }

    /// Charges what a request for these items took, in equal parts.
    pub(crate) fn charge(&mut self, keys: &[ItemKey], used: Units) {
        let now = Instant::now();
        let second = now.duration_since(self.began).as_secs();
        let share = 1.0 / keys.len().max(1) as f64;
        let units = Units { write: used.write * share, read: used.read * share };
        for key in keys {
            let table = self.table(&key.table, now);
            table.pair.charge(units);
            let of_second = in_second(&mut table.second, second, units);
            table.peak.write = table.peak.write.max(of_second.write);
            table.peak.read = table.peak.read.max(of_second.read);
            let partition = self.partition(key, now);
            partition.pair.charge(units);
            let of_partition = in_second(&mut partition.second, second, units);
            for (hottest, units) in
                [(&mut self.hottest_writes, of_partition.write), (&mut self.hottest_reads, of_partition.read)]
            {
                if units > hottest.units {
                    *hottest = Hottest { key: format!("{}/{}", key.table, key.partition), units };
                }
            }
        }
    }

    /// The keys that took most in a second: of write units, and of read units.
    pub(crate) fn hottest(&self) -> (Hottest, Hottest) {
        (self.hottest_writes.clone(), self.hottest_reads.clone())
    }

    fn table(&mut self, name: &str, now: Instant) -> &mut TableLimit {
        let at_first = self.warm.unwrap_or(Units { write: COLD_TABLE_WRITES, read: COLD_TABLE_READS });
        let table = self.tables.entry(name.to_owned()).or_insert_with(|| {
            let pair = Pair::new(at_first.write, at_first.read, now);
            TableLimit { pair, second: (0, Units::default()), peak: Units::default(), span_began: now }
        });
        if now.duration_since(table.span_began) >= TABLE_GROWTH_TIME {
            let (writes, reads) = (&mut table.pair.writes, &mut table.pair.reads);
            writes.per_second = writes.per_second.max(TABLE_GROWTH * table.peak.write);
            reads.per_second = reads.per_second.max(TABLE_GROWTH * table.peak.read);
            (table.peak, table.span_began) = (Units::default(), now);
        }
        table
    }

    fn partition(&mut self, key: &ItemKey, now: Instant) -> &mut Partition {
        let of_table = self.partitions.entry(key.table.clone()).or_default();
        of_table.entry(key.partition.clone()).or_insert_with(|| Partition {
            pair: Pair::new(PARTITION_WRITES, PARTITION_READS, now),
            second: (0, Units::default()),
        })
    }
}

/// Adds units to those of a second, and tells their sum.
fn in_second(so_far: &mut (u64, Units), second: u64, units: Units) -> Units {
    if so_far.0 != second {
        *so_far = (second, Units::default());
    }
    so_far.1.write += units.write;
    so_far.1.read += units.read;
    so_far.1
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn key(partition: &str) -> ItemKey {
        ItemKey { table: "t".to_owned(), partition: partition.to_owned(), sort: "s".to_owned() }
    }

    /// How many writes of a unit are let in within so many seconds, tried every millisecond.
    async fn let_in(capacity: &mut Capacity, partitions: usize, seconds: u64) -> u64 {
        let mut count = 0;
        for _ in 0..seconds * 1_000 {
            for partition in 0..partitions {
                let key = key(&partition.to_string());
                while capacity.admits(&key, true) {
                    capacity.charge(std::slice::from_ref(&key), Units { write: 1.0, read: 0.0 });
                    count += 1;
                }
            }
            tokio::time::advance(Duration::from_millis(1)).await;
        }
        count
    }

    #[tokio::test(start_paused = true)]
    async fn a_partition_takes_a_thousand_writes_a_second_and_a_cold_table_four_thousand() {
        let mut capacity = Capacity::new(None, false);
        // What the first second finds in the bucket comes on top.
        let about = |count: u64, all: u64| (all * 98 / 100..=all * 102 / 100).contains(&count);
        assert!(about(let_in(&mut capacity, 1, 10).await, 11_000));
        let mut capacity = Capacity::new(None, false);
        assert!(about(let_in(&mut capacity, 20, 10).await, 44_000));
        let mut warm = Capacity::new(Some(Units { write: 12_000.0, read: 0.0 }), false);
        assert!(about(let_in(&mut warm, 20, 10).await, 132_000));
    }

    #[tokio::test(start_paused = true)]
    async fn a_table_grows_to_twice_its_peak_and_a_partition_is_split_when_it_is_short_for_long() {
        let (mut grows, half_an_hour) = (Capacity::new(None, false), TABLE_GROWTH_TIME.as_secs());
        let_in(&mut grows, 8, 2).await;
        tokio::time::advance(Duration::from_secs(half_an_hour)).await;
        let_in(&mut grows, 8, 1).await;
        assert!(let_in(&mut grows, 8, 1).await >= 7_900);
        let mut splits = Capacity::new(None, true);
        let_in(&mut splits, 1, SPLIT_AFTER.as_secs() + 1).await;
        assert!(let_in(&mut splits, 1, 10).await >= 19_000);
    }

    #[tokio::test(start_paused = true)]
    async fn the_hottest_key_is_known() {
        let mut capacity = Capacity::new(None, false);
        for (partition, write) in [("a", 3.0), ("b", 5.0), ("a", 1.0)] {
            capacity.charge(&[key(partition)], Units { write, read: 0.0 });
        }
        let (writes, reads) = capacity.hottest();
        assert_eq!(writes, Hottest { key: "t/b".to_owned(), units: 5.0 });
        assert_eq!(reads, Hottest::default());
    }
}
