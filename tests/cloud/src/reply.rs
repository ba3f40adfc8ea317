//! Errors as the services word them, for requests that the model does not let through.

use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::http::StatusCode;
use aws_smithy_types::body::SdkBody;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::limits::NO_ANSWER;

/// What a connector answers.
pub(crate) type Answer = Result<HttpResponse, ConnectorError>;

/// An answer of this status with this body.
pub(crate) fn json_reply(status: u16, body: &Value) -> Answer {
    let status = StatusCode::try_from(status).map_err(|error| ConnectorError::user(error.into()))?;
    Ok(HttpResponse::new(status, SdkBody::from(body.to_string())))
}

/// No answer, as from a service that is gone.
pub(crate) async fn no_answer() -> Answer {
    sleep(NO_ANSWER).await;
    Err(ConnectorError::timeout("the connection was closed without an answer".into()))
}

/// An error of DynamoDB by its name.
pub(crate) fn dynamodb_error(status: u16, name: &str, message: &str) -> Answer {
    json_reply(
        status,
        &json!({"__type": format!("com.amazonaws.dynamodb.v20120810#{name}"), "message": message}),
    )
}

/// A transaction that was cancelled, each action for this reason or none.
pub(crate) fn cancelled(reasons: impl Iterator<Item = Option<&'static str>>) -> Answer {
    let reasons: Vec<Value> =
        reasons.map(|reason| json!({"Code": reason.unwrap_or("None"), "Message": reason})).collect();
    let codes: Vec<&str> = reasons.iter().filter_map(|reason| reason["Code"].as_str()).collect();
    let message = format!(
        "Transaction cancelled, please refer cancellation reasons for specific reasons [{}]",
        codes.join(", ")
    );
    json_reply(
        400,
        &json!({
            "__type": "com.amazonaws.dynamodb.v20120810#TransactionCanceledException",
            "message": message,
            "CancellationReasons": reasons,
        }),
    )
}

/// An error of SQS by its name.
pub(crate) fn sqs_error(status: u16, name: &str, message: &str) -> Answer {
    json_reply(status, &json!({"__type": format!("com.amazonaws.sqs#{name}"), "message": message}))
}
