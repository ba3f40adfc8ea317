//! What an account may take of AWS, and what it pays.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::limits::{
    BATCHES_OF_A_POLLER, COLD_TABLE_READS, COLD_TABLE_WRITES, CONCURRENCY, FIFO_MESSAGES, MOST_POLLERS,
    PARTITION_READS, PARTITION_WRITES, POLLERS_AT_FIRST, POLLERS_PER_MINUTE, PROVISIONED_PER_MINUTE,
    REQUEST_BYTES, SQS_IN_FLIGHT, TABLE_QUOTA,
};
use crate::prices::Prices;

/// Limits of an account and of a deployment. What a file does not name is what an account has that asked for no more.
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
            lambda_concurrency: CONCURRENCY as f64,
            table_writes: COLD_TABLE_WRITES,
            table_reads: COLD_TABLE_READS,
            table_quota_writes: TABLE_QUOTA,
            table_quota_reads: TABLE_QUOTA,
            partition_writes: PARTITION_WRITES,
            partition_reads: PARTITION_READS,
            minimum_pollers: 0.0,
            maximum_pollers: 20.0,
            sqs_in_flight: SQS_IN_FLIGHT,
            fifo_messages: FIFO_MESSAGES,
            request_bytes: REQUEST_BYTES,
            prices: Prices::default(),
        }
    }
}

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
            ("prices.million_schedules", self.prices.million_schedules),
            ("prices.poller_hour", self.prices.poller_hour),
        ];
        let above = limits.into_iter().find(|(_, value)| !(value.is_finite() && *value >= 1.0));
        let zero = prices.into_iter().find(|(_, value)| !(value.is_finite() && *value >= 0.0));
        match (above, zero) {
            (Some((field, value)), _) => Err(BadNumber { field, value, least: "from 1 on" }),
            (None, Some((field, value))) => Err(BadNumber { field, value, least: "from 0 on" }),
            (None, None) => Ok(()),
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
        Pollers {
            at_first: (POLLERS_AT_FIRST as f64).min(self.lambda_concurrency),
            a_second: (POLLERS_PER_MINUTE as f64 / 60.0).ceil(),
            most: (MOST_POLLERS as f64).min(self.lambda_concurrency),
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
    }

    #[test]
    fn provisioned_pollers_are_there_from_the_beginning() {
        assert_eq!(Account::default().pollers().at_first, 5.0);
        let provisioned = Account { minimum_pollers: 20.0, maximum_pollers: 100.0, ..Account::default() };
        let Pollers { at_first, most, .. } = provisioned.pollers();
        assert_eq!((at_first, most), (200.0, 1_000.0));
        let small = Account { lambda_concurrency: 10.0, ..provisioned };
        assert_eq!(small.pollers().at_first, 10.0);
    }
}
