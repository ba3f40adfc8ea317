//! What a client may take at the most.

use serde::{Deserialize, Serialize};
use tidegate_domain::quota::{CreatesPerMinute, PayloadBytes, Quotas};

use super::Rest;

/// The quotas of a client; what is absent is not bounded.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct QuotasDoc {
    /// Jobs that it may write in a minute.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    c: Option<u32>,
    /// Bytes of JSON that the payload of each of its jobs may have.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    p: Option<u32>,
    /// What a newer version stored.
    #[serde(flatten)]
    rest: Rest,
}

impl From<&Quotas> for QuotasDoc {
    fn from(quotas: &Quotas) -> Self {
        Self {
            c: quotas.creates_per_minute.map(CreatesPerMinute::get),
            p: quotas.payload_bytes.map(PayloadBytes::get),
            rest: Rest::default(),
        }
    }
}

impl QuotasDoc {
    pub(crate) fn read(&self) -> Result<Quotas, String> {
        let creates = self.c.map(|most| CreatesPerMinute::new(most.into())).transpose();
        let payload = self.p.map(|most| PayloadBytes::new(most.into())).transpose();
        Ok(Quotas {
            creates_per_minute: creates.map_err(|e| e.to_string())?,
            payload_bytes: payload.map_err(|e| e.to_string())?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stored_form_of_quotas_is_pinned() {
        let creates = Quotas { creates_per_minute: CreatesPerMinute::new(600).ok(), ..Quotas::default() };
        let both = Quotas { payload_bytes: PayloadBytes::new(1_024).ok(), ..creates };
        for (quotas, pinned) in
            [(creates, r#"{"c":600}"#), (both, r#"{"c":600,"p":1024}"#), (Quotas::default(), "{}")]
        {
            let text = serde_json::to_string(&QuotasDoc::from(&quotas)).unwrap();
            assert_eq!(text, pinned);
            assert_eq!(serde_json::from_str::<QuotasDoc>(&text).unwrap().read(), Ok(quotas));
        }
        for spoiled in [r#"{"c":0}"#, r#"{"p":1}"#] {
            assert!(serde_json::from_str::<QuotasDoc>(spoiled).unwrap().read().is_err());
        }
    }
}
