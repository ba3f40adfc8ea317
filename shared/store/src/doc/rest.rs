//! Members of a document or message that this version does not know.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tidegate_domain::unknown::Unknown;

/// Members that this version does not know, as the flattened last field of a document. It adds nothing where there are none.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Rest(BTreeMap<String, Value>);

impl From<&Unknown> for Rest {
    fn from(unknown: &Unknown) -> Self {
        // It came out of `unknown`, so it reads.
        Self(unknown.as_json().and_then(|json| serde_json::from_str(json).ok()).unwrap_or_default())
    }
}

impl Rest {
    /// The same, for a value of the domain to carry.
    pub(crate) fn unknown(&self) -> Unknown {
        if self.0.is_empty() {
            return Unknown::default();
        }
        serde_json::to_string(&self.0).map(Unknown::members).unwrap_or_default()
    }

    /// About how many bytes it adds.
    pub(crate) fn size(&self) -> usize {
        self.unknown().as_json().map_or(0, str::len)
    }
}
