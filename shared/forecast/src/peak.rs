//! The most of something.

/// The most of something, and when it was first.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Peak {
    /// How much.
    pub value: f64,
    /// When, in Unix seconds.
    pub at_s: i64,
}

impl Peak {
    pub(crate) fn see(&mut self, value: f64, at_s: i64) {
        if value > self.value {
            *self = Self { value, at_s };
        }
    }
}
