//! Why SQS refuses a request, in both spellings that AWS sends: the JSON shape and the older query code.

use crate::reply::Reply;

/// The error codes of the SQS API that this service gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Code {
    BatchEntryIdsNotDistinct,
    BatchRequestTooLong,
    EmptyBatchRequest,
    InvalidAttributeName,
    InvalidAttributeValue,
    InvalidBatchEntryId,
    InvalidMessageContents,
    InvalidParameterValue,
    MalformedInput,
    MessageNotInflight,
    MissingParameter,
    OverLimit,
    PurgeQueueInProgress,
    QueueDoesNotExist,
    QueueNameExists,
    ReceiptHandleIsInvalid,
    TooManyEntriesInBatchRequest,
    UnknownOperation,
    UnsupportedOperation,
}

impl Code {
    /// The `__type` of the JSON protocol.
    fn shape(self) -> &'static str {
        match self {
            Self::BatchEntryIdsNotDistinct => "com.amazonaws.sqs#BatchEntryIdsNotDistinct",
            Self::BatchRequestTooLong => "com.amazonaws.sqs#BatchRequestTooLong",
            Self::EmptyBatchRequest => "com.amazonaws.sqs#EmptyBatchRequest",
            Self::InvalidAttributeName => "com.amazonaws.sqs#InvalidAttributeName",
            Self::InvalidAttributeValue => "com.amazonaws.sqs#InvalidAttributeValue",
            Self::InvalidBatchEntryId => "com.amazonaws.sqs#InvalidBatchEntryId",
            Self::InvalidMessageContents => "com.amazonaws.sqs#InvalidMessageContents",
            Self::InvalidParameterValue => "com.amazon.coral.service#InvalidParameterValueException",
            Self::MalformedInput => "com.amazon.coral.service#SerializationException",
            Self::MessageNotInflight => "com.amazonaws.sqs#MessageNotInflight",
            Self::MissingParameter => "com.amazon.coral.service#MissingRequiredParameterException",
            Self::OverLimit => "com.amazonaws.sqs#OverLimit",
            Self::PurgeQueueInProgress => "com.amazonaws.sqs#PurgeQueueInProgress",
            Self::QueueDoesNotExist => "com.amazonaws.sqs#QueueDoesNotExist",
            Self::QueueNameExists => "com.amazonaws.sqs#QueueNameExists",
            Self::ReceiptHandleIsInvalid => "com.amazonaws.sqs#ReceiptHandleIsInvalid",
            Self::TooManyEntriesInBatchRequest => "com.amazonaws.sqs#TooManyEntriesInBatchRequest",
            Self::UnknownOperation => "com.amazon.coral.service#UnknownOperationException",
            Self::UnsupportedOperation => "com.amazonaws.sqs#UnsupportedOperation",
        }
    }

    /// The code of the query protocol: what SDKs show, and what a failed batch entry carries.
    pub(crate) fn query(self) -> &'static str {
        match self {
            Self::BatchEntryIdsNotDistinct => "AWS.SimpleQueueService.BatchEntryIdsNotDistinct",
            Self::BatchRequestTooLong => "AWS.SimpleQueueService.BatchRequestTooLong",
            Self::EmptyBatchRequest => "AWS.SimpleQueueService.EmptyBatchRequest",
            Self::InvalidAttributeName => "InvalidAttributeName",
            Self::InvalidAttributeValue => "InvalidAttributeValue",
            Self::InvalidBatchEntryId => "AWS.SimpleQueueService.InvalidBatchEntryId",
            Self::InvalidMessageContents => "InvalidMessageContents",
            Self::InvalidParameterValue => "InvalidParameterValue",
            Self::MalformedInput => "MalformedInput",
            Self::MessageNotInflight => "AWS.SimpleQueueService.MessageNotInflight",
            Self::MissingParameter => "MissingParameter",
            Self::OverLimit => "OverLimit",
            Self::PurgeQueueInProgress => "AWS.SimpleQueueService.PurgeQueueInProgress",
            Self::QueueDoesNotExist => "AWS.SimpleQueueService.NonExistentQueue",
            Self::QueueNameExists => "QueueAlreadyExists",
            Self::ReceiptHandleIsInvalid => "ReceiptHandleIsInvalid",
            Self::TooManyEntriesInBatchRequest => "AWS.SimpleQueueService.TooManyEntriesInBatchRequest",
            Self::UnknownOperation => "InvalidAction",
            Self::UnsupportedOperation => "AWS.SimpleQueueService.UnsupportedOperation",
        }
    }
}

/// A refusal that the caller gets as an AWS error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) code: Code,
    pub(crate) message: String,
}

impl Refused {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// `InvalidParameterValue` in the words of AWS.
    pub(crate) fn value(value: impl std::fmt::Display, parameter: &str, reason: &str) -> Self {
        let message = format!("Value {value} for parameter {parameter} is invalid. Reason: {reason}");
        Self::new(Code::InvalidParameterValue, message)
    }

    pub(crate) fn missing(parameter: &str) -> Self {
        Self::new(Code::MissingParameter, format!("The request must contain the parameter {parameter}."))
    }

    pub(crate) fn no_such_queue() -> Self {
        Self::new(Code::QueueDoesNotExist, "The specified queue does not exist.")
    }
}

/// Why a request did not succeed: refused, or the store failed.
#[derive(Debug)]
pub(crate) enum Failure {
    Refused(Refused),
    Storage(rusqlite::Error),
}

impl From<Refused> for Failure {
    fn from(refused: Refused) -> Self {
        Self::Refused(refused)
    }
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Storage(error)
    }
}

impl Failure {
    pub(crate) fn reply(self) -> Reply {
        match self {
            Self::Refused(refused) => {
                let mut reply = Reply::error(400, refused.code.shape(), &refused.message);
                reply.query_error = Some(format!("{};Sender", refused.code.query()));
                reply
            }
            Self::Storage(error) => {
                tracing::error!(%error, "the embedded SQS failed to reach its store");
                let mut reply =
                    Reply::error(500, "com.amazonaws.sqs#InternalFailure", "The store of the queue failed.");
                reply.query_error = Some("InternalFailure;Receiver".to_owned());
                reply
            }
        }
    }
}
