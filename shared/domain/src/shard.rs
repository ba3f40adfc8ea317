//! Which of several equal partitions a name belongs to. Stored rows depend on it: it never changes.

use crate::bounded::bounded;
use crate::limits::EXPRESSION_SHARDS;

bounded! {
    /// How many shards a LaunchExpression of a zone has.
    ExpressionShards(u32), "shards", 1..=EXPRESSION_SHARDS
}

/// The shard, 0 up to, not including, `shards`, of a name. Keys of rows follow from it, so it never changes.
pub fn shard_of(name: &str, shards: u32) -> u32 {
    (hash_of(name) % u64::from(shards.max(1))) as u32
}

/// A number that spreads names evenly: FNV-1a over the bytes, then MurmurHash3's finaliser, since FNV alone leaves names that
/// differ in their last digits in a few shards. Keys of rows follow from it, so it never changes.
pub(crate) fn hash_of(name: &str) -> u64 {
    let mut hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    for factor in [0xff51_afd7_ed55_8ccd, 0xc4ce_b9fe_1a85_ec53] {
        hash = (hash ^ (hash >> 33)).wrapping_mul(factor);
    }
    hash ^ (hash >> 33)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_keeps_its_shard_for_ever() {
        assert_eq!(["a", "nightly", "job_1", ""].map(|name| shard_of(name, 16)), [11, 2, 13, 6]);
    }

    #[test]
    fn names_spread_evenly() {
        let mut counts = [0_u32; 16];
        for i in 0..16_000 {
            counts[shard_of(&format!("job_{i}"), 16) as usize] += 1;
        }
        assert!(counts.iter().all(|c| (800..1200).contains(c)), "{counts:?}");
    }
}
