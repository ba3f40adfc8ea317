//! An expression taken apart into its seven fields.

use super::error::Field;

/// An expression taken apart, in upper case.
pub(super) struct Split {
    /// In the order of [`Field::ALL`]; what was left out is filled in.
    pub fields: [String; 7],
    /// How many of them are written: 5, 6 or 7.
    written: usize,
}

impl Split {
    pub(super) fn five(fields: [String; 5]) -> Self {
        let [minute, hour, day, month, weekday] = fields;
        let fields = ["0".to_owned(), minute, hour, day, month, weekday, "*".to_owned()];
        Self { fields, written: 5 }
    }

    pub(super) fn seven(fields: [String; 7]) -> Self {
        Self { fields, written: 7 }
    }

    pub(super) fn six(fields: [String; 6]) -> Self {
        let [second, minute, hour, day, month, weekday] = fields;
        Self { fields: [second, minute, hour, day, month, weekday, "*".to_owned()], written: 6 }
    }

    /// Its written fields, one blank apart; taking them apart again gives the same.
    pub(super) fn canonical(&self) -> String {
        let (first, last) = if self.written == 5 { (1, 6) } else { (0, self.written) };
        self.fields.get(first..last).unwrap_or(&self.fields).join(" ")
    }

    pub(super) fn field(&self, field: Field) -> &str {
        self.fields.get(field as usize).map_or("*", String::as_str)
    }

    /// Whether it looks as Quartz and Spring write it: with seconds, and `?` for a day field.
    pub(super) fn is_quartz(&self) -> bool {
        let blank = |field| self.field(field) == "?";
        self.written > 5 && (blank(Field::DayOfMonth) || blank(Field::DayOfWeek))
    }
}
