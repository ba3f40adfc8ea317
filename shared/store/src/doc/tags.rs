//! Tags as rows keep them: with commas between them.

use aws_sdk_dynamodb::types::AttributeValue;
use tidegate_domain::tags::Tags;

use crate::Result;
use crate::item::{Item, text};

/// The attribute; `None` when there are none.
pub(crate) fn tags_attribute(tags: &Tags) -> Option<AttributeValue> {
    (!tags.is_empty()).then(|| text(tags.iter().collect::<Vec<_>>().join(",")))
}

/// The tags of a row.
pub(crate) fn read_tags(item: Item<'_>) -> Result<Tags> {
    let words = item.find_text("tags").into_iter().flat_map(|tags| tags.split(','));
    Tags::new(words).map_err(|e| item.corrupt(format!("'tags': {e}")))
}
