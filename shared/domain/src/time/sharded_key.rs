//! Under which key a child was put into the index: its own, and the shard of its LaunchExpression.

use std::fmt;
use std::str::FromStr;

use super::launch::{ChildKey, KeyError};
use crate::limits::EXPRESSION_SHARDS;

/// A child's key and shard. Its text is `H:03/15/02`: LaunchExpression, minute, shard.
///
/// A job keeps the keys of its children, so that they are found again when the number of shards, or the way in which
/// expressions are decomposed, has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShardedKey {
    /// Its LaunchExpression and minute.
    pub key: ChildKey,
    /// 0 up to, not including, [`EXPRESSION_SHARDS`].
    pub shard: u32,
}

impl fmt::Display for ShardedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{:02}", self.key.launch_expression(), self.key.sort_prefix(), self.shard)
    }
}

impl FromStr for ShardedKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        let parts: Vec<&str> = text.split('/').collect();
        let [expression, minute, shard] = parts[..] else { return Err(KeyError::of(text)) };
        let shard = shard.parse().ok().filter(|shard| *shard < EXPRESSION_SHARDS);
        let shard = shard.ok_or_else(|| KeyError::of(text))?;
        Ok(Self { key: ChildKey::parse(expression, minute)?, shard })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sharded_key_reads_back() {
        for text in ["H:03/15/02", "MM:02-29:*/00/63", "H:*:any/--/00"] {
            assert_eq!(text.parse::<ShardedKey>().unwrap().to_string(), text);
        }
        for text in ["", "H:03/15", "H:03/15/64", "H:03/--/00", "X:03/15/00"] {
            assert!(text.parse::<ShardedKey>().is_err(), "{text}");
        }
    }
}
