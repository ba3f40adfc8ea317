//! What can go wrong between the store and DynamoDB.

use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use thiserror::Error;

use crate::tables::Table;

/// Why the store could not do what it was asked. Reads on after "failed to ...:".
#[derive(Debug, Error)]
pub enum StoreError {
    /// DynamoDB refused or did not answer. Whether the write took place is unknown when `code` is empty.
    #[error("{operation} on table '{}' failed: {code} {message}", table.name())]
    Aws {
        /// The DynamoDB operation, such as `UpdateItem`.
        operation: &'static str,
        /// The table, or the first of those that a transaction or batch writes.
        table: Table,
        /// The error code of AWS, such as `ThrottlingException`; empty when no answer came.
        code: String,
        /// What AWS, or the connection, said.
        message: String,
    },
    /// A row does not read as what this version writes: an attribute is missing or malformed, or its format is a newer
    /// one than [`FORMAT`](crate::FORMAT).
    #[error("row '{key}' of table '{}' cannot be read: {reason}", table.name())]
    Corrupt {
        /// The table that the row is in.
        table: Table,
        /// The row's keys, as `<pk> / <sk>`; `?` for one that is missing.
        key: String,
        /// The attribute and what is wrong with it.
        reason: String,
    },
}

impl StoreError {
    pub(crate) fn aws<E>(operation: &'static str, table: Table, error: &SdkError<E, HttpResponse>) -> Self
    where
        E: ProvideErrorMetadata + std::error::Error + 'static,
    {
        let code = error.code().unwrap_or_default().to_owned();
        let message = match error.message() {
            Some(message) => message.to_owned(),
            None => chain(error),
        };
        Self::Aws { operation, table, code, message }
    }

    /// DynamoDB left rows of a batch aside in every round.
    pub(crate) fn not_served(operation: &'static str, table: Table) -> Self {
        Self::Aws {
            operation,
            table,
            code: "ProvisionedThroughputExceededException".to_owned(),
            message: "some rows were left aside in every round".to_owned(),
        }
    }

    /// The [`StoreError::Corrupt`] of a secret of the deployment, by its name, that does not read as what this version
    /// makes.
    pub fn unreadable_secret(name: &str) -> Self {
        let reason = "it is no key of this version".to_owned();
        Self::Corrupt { table: Table::Clients, key: format!("secret|{name}"), reason }
    }

    /// Whether a table or partition was too small for the call at that moment: nothing was done.
    pub fn is_throttling(&self) -> bool {
        matches!(self, Self::Aws { code, .. } if code.contains("Throttl") || code.contains("Throughput"))
    }

    /// Whether the same call may succeed a little later: throttling, conflicts and lost connections.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Aws { code, .. } => {
                code.is_empty()
                    || self.is_throttling()
                    || matches!(
                        code.as_str(),
                        "TransactionConflictException"
                            | "TransactionCanceledException"
                            | "InternalServerError"
                    )
            }
            Self::Corrupt { .. } => false,
        }
    }

    /// Whether what was read or written is at fault, and not the service, the deployment or the way there: DynamoDB
    /// calls it invalid, or it cannot be read. Another row fares no worse.
    pub fn is_of_one_row(&self) -> bool {
        match self {
            Self::Aws { code, .. } => code == "ValidationException",
            Self::Corrupt { .. } => true,
        }
    }
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        source = inner.source();
    }
    text
}
