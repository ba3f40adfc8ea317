//! What a stored document says beyond what this version knows.

/// Members of a stored document that this version does not know, as the text of a JSON object. Mostly there are none.
///
/// They are carried to wherever the document is written again, so that an older process drops nothing that a newer one
/// wrote. Nothing in this version acts on them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Unknown(Option<Box<str>>);

impl Unknown {
    /// The members of a JSON object, given as its text. That it is JSON is not looked at.
    pub fn members(json: String) -> Self {
        Self(Some(json.into_boxed_str()))
    }

    /// The JSON object; `None` when there are no such members.
    pub fn as_json(&self) -> Option<&str> {
        self.0.as_deref()
    }
}
