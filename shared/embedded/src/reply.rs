//! A reply of an embedded service, in the one form that both the connector and the loopback server send.

use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::http::StatusCode;
use aws_smithy_types::body::SdkBody;

use crate::faults::{Refusal, Service};

/// The header by which services that once spoke the Query protocol repeat their old error codes.
pub(crate) const QUERY_ERROR_HEADER: &str = "x-amzn-query-error";

/// Status, body and the query error code of a reply in AWS JSON 1.0.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
    /// The value of [`QUERY_ERROR_HEADER`], `code;fault`.
    pub(crate) query_error: Option<String>,
}

impl Reply {
    /// Status 200 with this body.
    pub(crate) fn ok(body: Vec<u8>) -> Self {
        Self { status: 200, body, query_error: None }
    }

    /// An error with the members every AWS JSON error has.
    pub(crate) fn error(status: u16, error_type: &str, message: &str) -> Self {
        let body = serde_json::json!({ "__type": error_type, "message": message });
        Self { status, body: body.to_string().into_bytes(), query_error: None }
    }

    /// The error of a request that a fault plan refuses.
    pub(crate) fn refused(service: Service, refusal: Refusal) -> Self {
        let (status, error_type, message) = match (service, refusal) {
            (Service::DynamoDb, Refusal::Throttled) => (
                400,
                "com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException",
                "The level of configured provisioned throughput for the table was exceeded.",
            ),
            (Service::DynamoDb, Refusal::Internal) => {
                (500, "com.amazonaws.dynamodb.v20120810#InternalServerError", "Internal server error")
            }
            (Service::DynamoDb, Refusal::Denied) => (
                400,
                "com.amazonaws.dynamodb.v20120810#AccessDeniedException",
                "User is not authorized to perform this operation on this resource.",
            ),
            (Service::Sqs, Refusal::Denied) => {
                (403, "com.amazonaws.sqs#AccessDenied", "Access to the resource is denied.")
            }
            (Service::Sqs, Refusal::Throttled) => (
                400,
                "com.amazonaws.sqs#RequestThrottled",
                "The request was denied due to request throttling.",
            ),
            (Service::Sqs, Refusal::Internal) => {
                (500, "com.amazonaws.sqs#InternalFailure", "The request failed because of an internal error.")
            }
        };
        let mut reply = Self::error(status, error_type, message);
        if service == Service::Sqs {
            let fault = if status < 500 { "Sender" } else { "Receiver" };
            let code = error_type.rsplit('#').next().unwrap_or_default();
            reply.query_error = Some(format!("{code};{fault}"));
        }
        reply
    }

    /// The reply as the SDK's HTTP layer takes it.
    pub(crate) fn into_http(self) -> Result<HttpResponse, ConnectorError> {
        let status = StatusCode::try_from(self.status).map_err(|error| ConnectorError::user(error.into()))?;
        let mut response = HttpResponse::new(status, SdkBody::from(self.body));
        if let Some(code) = self.query_error {
            response.headers_mut().insert(QUERY_ERROR_HEADER, code);
        }
        Ok(response)
    }
}
