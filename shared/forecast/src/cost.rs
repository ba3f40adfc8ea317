//! What something takes of AWS, in what AWS counts.

use std::ops::{Add, AddAssign, Mul, Sub};

use serde::Serialize;

/// Days of a month, as AWS counts them: 730 hours.
const MONTH_DAYS: f64 = 730.0 / 24.0;

/// Units, requests and time. A sum of costs is a cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Cost {
    /// Write units of DynamoDB.
    pub write_units: f64,
    /// Read units of DynamoDB.
    pub read_units: f64,
    /// Requests to SQS, as they are billed: each started 64 KB of a call.
    pub sqs_requests: f64,
    /// Invocations of functions.
    pub lambda_requests: f64,
    /// Memory times time of functions.
    pub gb_seconds: f64,
    /// What functions log, in bytes.
    pub log_bytes: f64,
    /// What tables keep of it, in gigabytes, times for how many months.
    pub gb_months: f64,
}

impl Cost {
    /// No cost.
    pub const NONE: Self = Self::tables(0.0, 0.0);

    /// Write units and read units.
    pub const fn tables(write_units: f64, read_units: f64) -> Self {
        Self {
            write_units,
            read_units,
            sqs_requests: 0.0,
            lambda_requests: 0.0,
            gb_seconds: 0.0,
            log_bytes: 0.0,
            gb_months: 0.0,
        }
    }

    /// The same with requests to SQS.
    pub const fn queues(self, sqs_requests: f64) -> Self {
        Self { sqs_requests, ..self }
    }

    /// The same with invocations and their memory times time.
    pub const fn functions(self, lambda_requests: f64, gb_seconds: f64) -> Self {
        Self { lambda_requests, gb_seconds, ..self }
    }

    /// The same with what is logged, in bytes.
    pub const fn logs(self, log_bytes: f64) -> Self {
        Self { log_bytes, ..self }
    }

    /// The same with rows of so many bytes that a table keeps for so many days.
    pub const fn keeps(self, bytes: f64, days: f64) -> Self {
        Self { gb_months: bytes * 1e-9 * days / MONTH_DAYS, ..self }
    }
}

impl Add for Cost {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            write_units: self.write_units + other.write_units,
            read_units: self.read_units + other.read_units,
            sqs_requests: self.sqs_requests + other.sqs_requests,
            lambda_requests: self.lambda_requests + other.lambda_requests,
            gb_seconds: self.gb_seconds + other.gb_seconds,
            log_bytes: self.log_bytes + other.log_bytes,
            gb_months: self.gb_months + other.gb_months,
        }
    }
}

impl AddAssign for Cost {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Cost {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        self + other * -1.0
    }
}

impl Mul<f64> for Cost {
    type Output = Self;

    fn mul(self, times: f64) -> Self {
        Self {
            write_units: self.write_units * times,
            read_units: self.read_units * times,
            sqs_requests: self.sqs_requests * times,
            lambda_requests: self.lambda_requests * times,
            gb_seconds: self.gb_seconds * times,
            log_bytes: self.log_bytes * times,
            gb_months: self.gb_months * times,
        }
    }
}
