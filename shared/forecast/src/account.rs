//! What an account may take of AWS, and what it pays.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::limits::{
    BATCHES_OF_A_POLLER, COLD_TABLE_READS, COLD_TABLE_WRITES, FIFO_MESSAGES, MOST_POLLERS,
    NEW_ACCOUNT_CONCURRENCY, PARTITION_READS, PARTITION_WRITES, POLLERS_AT_FIRST, POLLERS_PER_MINUTE,
    PROVISIONED_PER_MINUTE, REQUEST_BYTES, SQS_IN_FLIGHT, TABLE_QUOTA,
};
use crate::prices::Prices;

/// Limits of an account and of a deployment. What a file does not name is what a new account has, with the template's defaults:
/// a forecast must not promise what only a quota request brings.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Account {
    /// Invocations at once, of all functions together.
    pub lambda_concurrency: f64,
    /// Write units a second that each table takes at once: its warm throughput, or twice its last peak.
    pub table_writes: f64,
    /// Read units a second that each table gives at once.
    pub table_reads: f64,
    /// Write units a second that a table may grow to.
    pub table_quota_writes: f64,
    /// Read units a second that a table may grow to.
    pub table_quota_reads: f64,
    /// Write units a second of one partition.
    pub partition_writes: f64,
    /// Read units a second of one partition.
    pub partition_reads: f64,
    /// Handlers at once for the dispatch queue, as `DispatchMaximumConcurrency`; does not count beside provisioned pollers.
    pub dispatch_maximum: f64,
    /// Emitters at once beside the tick, as `ScanMaximumConcurrency`.
    pub scan_maximum: f64,
    /// Provisioned pollers of the dispatch queue, as the parameter `HandlerMinimumPollers`; 0 for none.
    pub minimum_pollers: f64,
    /// The most provisioned pollers, as `HandlerMaximumPollers`.
    pub maximum_pollers: f64,
    /// Messages of one queue in flight.
    pub sqs_in_flight: f64,
    /// Messages a second of one FIFO queue.
    pub fifo_messages: f64,
    /// A request to the API, in bytes.
    pub request_bytes: f64,
    /// What AWS charges.
    pub prices: Prices,
}

impl Default for Account {
    fn default() -> Self {
        Self {
            lambda_concurrency: NEW_ACCOUNT_CONCURRENCY as f64,
            table_writes: COLD_TABLE_WRITES,
            table_reads: COLD_TABLE_READS,
            table_quota_writes: TABLE_QUOTA,
            table_quota_reads: TABLE_QUOTA,
            partition_writes: PARTITION_WRITES,
            partition_reads: PARTITION_READS,
            dispatch_maximum: 4.0,
            scan_maximum: 2.0,
            minimum_pollers: 0.0,
            maximum_pollers: 20.0,
            sqs_in_flight: SQS_IN_FLIGHT,
            fifo_messages: FIFO_MESSAGES,
            request_bytes: REQUEST_BYTES,
            prices: Prices::default(),
        }
    }
}

/// The most that the template takes as `HandlerMinimumPollers`.
const MOST_MINIMUM_POLLERS: f64 = 200.0;

/// A number of an account that cannot be.
#[derive(Debug, Clone, PartialEq, Error)]
#[error("{field} is {value}; it must be a number {least}")]
pub struct BadNumber {
    field: &'static str,
    value: f64,
    least: &'static str,
}

/// How many batches of messages the event source of the dispatch queue has under way.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pollers {
    /// When it begins.
    pub at_first: f64,
    /// What each second adds while messages are left.
    pub a_second: f64,
    /// The most.
    pub most: f64,
}

impl Account {
    /// Checks the numbers: limits are above zero, prices are not below it.
    ///
    /// # Errors
    /// [`BadNumber`] for the first that is not, with its name.
    pub fn check(&self) -> Result<(), BadNumber> {
        let limits = [
            ("lambda_concurrency", self.lambda_concurrency),
            ("table_writes", self.table_writes),
            ("table_reads", self.table_reads),
            ("table_quota_writes", self.table_quota_writes),
            ("table_quota_reads", self.table_quota_reads),
            ("partition_writes", self.partition_writes),
            ("partition_reads", self.partition_reads),
            ("dispatch_maximum", self.dispatch_maximum),
            ("scan_maximum", self.scan_maximum),
            ("maximum_pollers", self.maximum_pollers),
            ("sqs_in_flight", self.sqs_in_flight),
            ("fifo_messages", self.fifo_messages),
            ("request_bytes", self.request_bytes),
        ];
        let prices = [
            ("minimum_pollers", self.minimum_pollers),
            ("prices.million_write_units", self.prices.million_write_units),
            ("prices.million_read_units", self.prices.million_read_units),
            ("prices.million_sqs_requests", self.prices.million_sqs_requests),
            ("prices.million_lambda_requests", self.prices.million_lambda_requests),
            ("prices.gb_second", self.prices.gb_second),
            ("prices.log_gigabyte", self.prices.log_gigabyte),
            ("prices.stored_gigabyte", self.prices.stored_gigabyte),
            ("prices.poller_hour", self.prices.poller_hour),
        ];
        let above = limits.into_iter().find(|(_, value)| !(value.is_finite() && *value >= 1.0));
        let zero = prices.into_iter().find(|(_, value)| !(value.is_finite() && *value >= 0.0));
        match (above, zero) {
            (Some((field, value)), _) => Err(BadNumber { field, value, least: "from 1 on" }),
            (None, Some((field, value))) => Err(BadNumber { field, value, least: "from 0 on" }),
            (None, None) => self.check_pollers(),
        }
    }

    /// Lambda takes no single provisioned poller, and no maximum below the minimum.
    fn check_pollers(&self) -> Result<(), BadNumber> {
        let (minimum, maximum) = (self.minimum_pollers, self.maximum_pollers);
        match minimum {
            0.0 => Ok(()),
            2.0..=MOST_MINIMUM_POLLERS if minimum > maximum => {
                Err(BadNumber { field: "maximum_pollers", value: maximum, least: "from minimum_pollers on" })
            }
            2.0..=MOST_MINIMUM_POLLERS => Ok(()),
            _ => Err(BadNumber {
                field: "minimum_pollers",
                value: minimum,
                least: "from 2 to 200, or 0 for none",
            }),
        }
    }

    /// The event source of the dispatch queue.
    pub fn pollers(&self) -> Pollers {
        let batches = BATCHES_OF_A_POLLER as f64;
        if self.minimum_pollers > 0.0 {
            return Pollers {
                at_first: (self.minimum_pollers * batches).min(self.lambda_concurrency),
                a_second: (PROVISIONED_PER_MINUTE as f64 / 60.0).ceil(),
                most: (self.maximum_pollers.max(self.minimum_pollers) * batches).min(self.lambda_concurrency),
            };
        }
        let most = (MOST_POLLERS as f64).min(self.dispatch_maximum).min(self.lambda_concurrency);
        Pollers {
            at_first: (POLLERS_AT_FIRST as f64).min(most),
            a_second: (POLLERS_PER_MINUTE as f64 / 60.0).ceil(),
            most,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_cannot_be_is_named() {
        assert_eq!(Account::default().check(), Ok(()));
        let says = |account: Account| account.check().unwrap_err().to_string();
        let none = Account { lambda_concurrency: 0.0, ..Account::default() };
        assert_eq!(says(none), "lambda_concurrency is 0; it must be a number from 1 on");
        let prices = Prices { gb_second: f64::NAN, ..Prices::default() };
        assert!(says(Account { prices, ..Account::default() }).starts_with("prices.gb_second is NaN"));
        let pollers = |minimum_pollers, maximum_pollers| {
            says(Account { minimum_pollers, maximum_pollers, ..Account::default() })
        };
        assert_eq!(
            pollers(1.0, 20.0),
            "minimum_pollers is 1; it must be a number from 2 to 200, or 0 for none"
        );
        assert_eq!(pollers(30.0, 20.0), "maximum_pollers is 20; it must be a number from minimum_pollers on");
    }

    #[test]
    fn provisioned_pollers_are_there_from_the_beginning() {
        let Pollers { at_first, most, .. } = Account::default().pollers();
        assert_eq!((at_first, most), (4.0, 4.0), "the template lets the dispatch queue have 4");
        let more = Account { lambda_concurrency: 1_000.0, dispatch_maximum: 400.0, ..Account::default() };
        assert_eq!((more.pollers().at_first, more.pollers().most), (5.0, 400.0));
        let more = Account { lambda_concurrency: 1_000.0, ..Account::default() };
        let provisioned = Account { minimum_pollers: 20.0, maximum_pollers: 100.0, ..more };
        let Pollers { at_first, most, .. } = provisioned.pollers();
        assert_eq!((at_first, most), (200.0, 1_000.0));
        let small = Account { lambda_concurrency: 10.0, ..provisioned };
        assert_eq!(small.pollers().at_first, 10.0);
    }
}
