//! How calls to DynamoDB and SQS are made: by the SDK, or straight to a service in this process.
//!
//! Around each call the SDK puts together interceptors, resolvers and a retry strategy, which is what a network and AWS ask for
//! and a tenth to a fifth of the processor time of `tidegate local`. A call that goes straight has the same request, written by the
//! SDK, and the same answer or error, read by the SDK, with nothing between. Batches of messages and of rows, and updates of rows,
//! most of all that would be written and read, are handed over as they are ([`TakesCalls`]).

mod batch;
mod operations;
mod taker;

use std::error::Error as StdError;
use std::fmt::Debug;
use std::sync::Arc;

use aws_smithy_runtime_api::client::http::{HttpConnector as _, SharedHttpConnector};
use aws_smithy_runtime_api::client::interceptors::context::{Error, Input, Output};
use aws_smithy_runtime_api::client::orchestrator::{HttpResponse, OrchestratorError};
use aws_smithy_runtime_api::client::result::{ConnectorError, SdkError};
use aws_smithy_runtime_api::client::runtime_plugin::RuntimePlugin;
use aws_smithy_runtime_api::client::ser_de::{
    DeserializeResponse as _, SerializeRequest as _, SharedRequestSerializer, SharedResponseDeserializer,
};
use aws_smithy_types::config_bag::{ConfigBag, FrozenLayer};

pub use batch::{Attribute, BatchEntry, RefusedEntry, send_batch};
pub use taker::{Taken, TakesCalls};

/// Which way calls go: by the SDK, unless told otherwise.
///
/// ```
/// # use std::sync::Arc;
/// # use chrono::Utc;
/// # use tidegate_domain::clock::ManualClock;
/// # use tidegate_embedded::Embedded;
/// use tidegate_calls::Call as _;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let embedded = Embedded::in_memory(Arc::new(ManualClock::new(Utc::now())))?;
/// let (sqs, way) = (embedded.sqs(), embedded.way());
/// let url = sqs.create_queue().queue_name("jobs").send().await?.queue_url.unwrap_or_default();
/// let sent = sqs.send_message().queue_url(url).message_body("one").send_by(&way).await?;
/// assert!(sent.message_id.is_some());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default)]
pub struct Way(Option<Straight>);

/// To services in this process.
#[derive(Debug, Clone)]
struct Straight {
    connector: SharedHttpConnector,
    /// What takes calls as they are.
    taker: Option<Arc<dyn TakesCalls>>,
    /// Whether the SDK makes a call once more, with its own retries, that failed in a way that may pass.
    repeats: bool,
}

impl Way {
    /// Straight to the services behind `connector`, which serve both DynamoDB and SQS and answer with bodies in memory. What fails
    /// in a way that may pass is left to the SDK, and to the retries of its client.
    pub fn straight_to(connector: SharedHttpConnector) -> Self {
        Self(Some(Straight { connector, taker: None, repeats: true }))
    }

    /// The same way, on which `taker` takes calls as they are.
    #[must_use]
    pub fn handing_to(self, taker: Arc<dyn TakesCalls>) -> Self {
        Self(self.0.map(|straight| Straight { taker: Some(taker), ..straight }))
    }

    /// The same way, on which every call is one request: for clients that make no retries.
    #[must_use]
    pub fn once(self) -> Self {
        Self(self.0.map(|straight| Straight { repeats: false, ..straight }))
    }

    fn taker(&self) -> Option<&dyn TakesCalls> {
        self.0.as_ref()?.taker.as_deref()
    }
}

/// A call as the SDK's builders make it.
pub trait Call {
    /// What it is answered with.
    type Output;
    /// What its service refuses it with.
    type Error;

    /// Makes the call.
    ///
    /// # Errors
    /// The SDK's, whichever way it goes.
    fn send_by(
        &self,
        way: &Way,
    ) -> impl Future<Output = Result<Self::Output, SdkError<Self::Error, HttpResponse>>> + Send;
}

/// An answer and what it says, or why there is none.
type Exchanged = Result<(HttpResponse, Result<Output, OrchestratorError<Error>>), ConnectorError>;

/// How the requests of an operation are written and its answers read, as its part of the SDK says.
struct Form(Option<FrozenLayer>);

impl Form {
    fn of(operation: &impl RuntimePlugin) -> Self {
        Self(operation.config())
    }

    /// Makes a call straight. Nothing when its part of the SDK does not say how, or cannot write it.
    async fn call<O, E>(
        &self,
        connector: &SharedHttpConnector,
        input: Input,
    ) -> Option<Result<O, SdkError<E, HttpResponse>>>
    where
        O: Debug + Send + Sync + 'static,
        E: StdError + Send + Sync + 'static,
    {
        let (answer, read) = match self.exchange(connector, input).await? {
            Ok(exchanged) => exchanged,
            Err(error) => return Some(Err(SdkError::dispatch_failure(error))),
        };
        let mut refused = None;
        match read.map_err(|error| error.map_operation_error(|error| refused = Some(error))) {
            Ok(output) => Some(Ok(output.downcast().ok()?)),
            Err(unread) => Some(Err(match refused {
                Some(error) => SdkError::service_error(error.downcast().ok()?, answer),
                None => SdkError::response_error(format!("{unread:?}"), answer),
            })),
        }
    }

    /// Writes a request, hands it over and reads the answer.
    async fn exchange(&self, connector: &SharedHttpConnector, input: Input) -> Option<Exchanged> {
        let form = self.0.as_ref()?;
        let (writer, reader) =
            (form.load::<SharedRequestSerializer>()?, form.load::<SharedResponseDeserializer>()?);
        let request = writer.serialize_input(input, &mut ConfigBag::base()).ok()?;
        let read = |answer| {
            let read = reader.deserialize_nonstreaming_with_config(&answer, &ConfigBag::base());
            (answer, read)
        };
        Some(connector.call(request).await.map(read))
    }
}

/// Whether a call that failed so may succeed when it is made again.
fn may_pass<E>(error: &SdkError<E, HttpResponse>) -> bool {
    error.raw_response().is_none_or(|answer| answer.status().is_server_error())
}
