//! List prices, each with its source. No other file has a price.
//!
//! The rule that calls the emitter each minute costs nothing: AWS charges for no events of its own on the default bus.
//!
//! Region us-east-1, in dollars, without the free tier and without the discounts of large accounts, as of 2026-11.
//! They change: a file of limits may name others.

use std::ops::Add;

use serde::{Deserialize, Serialize};

use crate::cost::Cost;

/// Hours of a month, as AWS counts them.
const MONTH_HOURS: f64 = 730.0;

/// What AWS charges.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Prices {
    /// A million write units. Source: DynamoDB pricing, on-demand mode since November 2024.
    pub million_write_units: f64,
    /// A million read units. Source: as `million_write_units`.
    pub million_read_units: f64,
    /// A million requests to SQS, standard queues, first tier. Source: SQS pricing.
    pub million_sqs_requests: f64,
    /// A million invocations. Source: Lambda pricing.
    pub million_lambda_requests: f64,
    /// A GB-second on arm64, first tier. Source: Lambda pricing.
    pub gb_second: f64,
    /// A gigabyte of logs taken in. Source: CloudWatch pricing, standard class.
    pub log_gigabyte: f64,
    /// A gigabyte that tables keep for a month. Source: DynamoDB pricing, standard table class.
    pub stored_gigabyte: f64,
    /// An hour of a provisioned poller. *Assumed*: read it off the Lambda pricing page before you rely on it.
    pub poller_hour: f64,
}

impl Default for Prices {
    fn default() -> Self {
        Self {
            million_write_units: 0.625,
            million_read_units: 0.125,
            million_sqs_requests: 0.40,
            million_lambda_requests: 0.20,
            gb_second: 0.000_013_333_4,
            log_gigabyte: 0.50,
            stored_gigabyte: 0.25,
            poller_hour: 0.009_25,
        }
    }
}

/// A bill, by service, in dollars.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Bill {
    /// DynamoDB, write units.
    pub dynamodb_writes: f64,
    /// DynamoDB, read units.
    pub dynamodb_reads: f64,
    /// SQS.
    pub sqs: f64,
    /// Lambda, invocations.
    pub lambda_requests: f64,
    /// Lambda, time.
    pub lambda_time: f64,
    /// Lambda, provisioned pollers.
    pub pollers: f64,
    /// CloudWatch, logs.
    pub logs: f64,
    /// DynamoDB, what tables keep.
    pub storage: f64,
}

/// What a service charges.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Service {
    /// A name that stays.
    pub id: &'static str,
    /// How it is called.
    pub name: &'static str,
    /// What it charges.
    pub dollars: f64,
}

impl Add for Bill {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            dynamodb_writes: self.dynamodb_writes + other.dynamodb_writes,
            dynamodb_reads: self.dynamodb_reads + other.dynamodb_reads,
            sqs: self.sqs + other.sqs,
            lambda_requests: self.lambda_requests + other.lambda_requests,
            lambda_time: self.lambda_time + other.lambda_time,
            pollers: self.pollers + other.pollers,
            logs: self.logs + other.logs,
            storage: self.storage + other.storage,
        }
    }
}

impl Bill {
    /// The bill of a cost.
    pub fn of(cost: &Cost, prices: &Prices) -> Self {
        let million = 1e-6;
        Self {
            dynamodb_writes: cost.write_units * million * prices.million_write_units,
            dynamodb_reads: cost.read_units * million * prices.million_read_units,
            sqs: cost.sqs_requests * million * prices.million_sqs_requests,
            lambda_requests: cost.lambda_requests * million * prices.million_lambda_requests,
            lambda_time: cost.gb_seconds * prices.gb_second,
            pollers: 0.0,
            logs: cost.log_bytes * 1e-9 * prices.log_gigabyte,
            storage: cost.gb_months * prices.stored_gigabyte,
        }
    }

    /// The same with so many provisioned pollers for so many minutes.
    #[must_use]
    pub fn with_pollers(self, pollers: f64, minutes: f64, prices: &Prices) -> Self {
        Self { pollers: pollers * minutes / 60.0 * prices.poller_hour, ..self }
    }

    /// All services together.
    pub fn total(&self) -> f64 {
        self.services().iter().map(|service| service.dollars).sum()
    }

    /// Each service with its part.
    pub fn services(&self) -> [Service; 8] {
        let service = |id, name, dollars| Service { id, name, dollars };
        [
            service("dynamodb_writes", "DynamoDB writes", self.dynamodb_writes),
            service("dynamodb_reads", "DynamoDB reads", self.dynamodb_reads),
            service("dynamodb_storage", "DynamoDB storage", self.storage),
            service("sqs", "SQS", self.sqs),
            service("lambda_requests", "Lambda requests", self.lambda_requests),
            service("lambda_time", "Lambda time", self.lambda_time),
            service("lambda_pollers", "Lambda pollers", self.pollers),
            service("cloudwatch_logs", "CloudWatch logs", self.logs),
        ]
    }

    /// By what a window's bill is multiplied for a month like it.
    pub fn months(window_seconds: f64) -> f64 {
        MONTH_HOURS * 3_600.0 / window_seconds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bill_is_the_sum_of_its_services() {
        let cost = Cost::tables(1e6, 2e6).queues(3e6).functions(1e6, 1e6).logs(1e9).keeps(1e9, 730.0 / 24.0);
        let bill = Bill::of(&cost, &Prices::default());
        let by_hand = 0.625 + 0.25 + 1.2 + 0.2 + 13.3334 + 0.5 + 0.25;
        assert!((bill.total() - by_hand).abs() < 1e-9, "{bill:?}");
    }
}
