//! The seam: what stands in the SDK clients' place for an HTTP client, and serves each request in the process.
//!
//! It reads `x-amz-target`, asks the fault plan, hands the body to the embedded service and returns the reply with the
//! status and headers AWS would send. It opens no socket, signs nothing and keeps no state of its own.

mod clients;
mod handed_over;
mod resources;

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use aws_sdk_dynamodb::config::RuntimeComponents;
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use futures::FutureExt as _;

pub use clients::ClientOptions;
pub(crate) use clients::{dynamodb_client, sqs_client};

use crate::dynamodb::DynamoDb;
use crate::faults::{Call, Fault, Faults, Service};
use crate::folder::Folder;
use crate::meter::Meter;
use crate::reply::Reply;
use crate::sqs::Sqs;

/// What every client of one [`Embedded`](crate::Embedded) reaches through its connector.
pub(crate) struct Services {
    pub(crate) dynamodb: DynamoDb,
    pub(crate) sqs: Sqs,
    pub(crate) meter: Meter,
    /// The faults of clients that have none of their own.
    pub(crate) faults: RwLock<Option<Faults>>,
    /// Held as long as anyone can reach the services.
    pub(crate) folder: Option<Folder>,
}

/// The connector of one client: the services, and the faults that this client meets.
#[derive(Clone)]
pub(crate) struct Seam {
    services: Arc<Services>,
    faults: Option<Faults>,
}

impl Seam {
    pub(crate) fn new(services: Arc<Services>, faults: Option<Faults>) -> Self {
        Self { services, faults }
    }

    /// The faults in force: this client's, or those of all clients.
    fn faults(&self) -> Option<Faults> {
        let shared = || self.services.faults.read().unwrap_or_else(PoisonError::into_inner).clone();
        self.faults.clone().or_else(shared)
    }

    fn fault(&self, service: Service, operation: &str, body: &[u8]) -> Fault {
        let Some(faults) = self.faults() else { return Fault::None };
        faults.on_request(&Call {
            service,
            operation: operation.to_owned(),
            resources: resources::named_in(service, body),
        })
    }

    /// What stands for the SDK's own token in a transaction: the invocation, which all attempts at one call share. Without
    /// faults no reply is ever lost, so there is none: the library would keep every token for ten minutes.
    fn transaction_token(&self, operation: &str, request: &HttpRequest) -> Option<String> {
        let repeatable = operation == "TransactWriteItems" && self.faults().is_some();
        repeatable.then(|| request.headers().get("amz-sdk-invocation-id").map(str::to_owned)).flatten()
    }

    async fn serve_dynamodb(
        &self,
        operation: &str,
        request: &HttpRequest,
    ) -> Result<HttpResponse, ConnectorError> {
        let body = request.body().bytes().unwrap_or_default();
        let fault = self.fault(Service::DynamoDb, operation, body);
        if let Some(early) = before(fault, Service::DynamoDb) {
            return early;
        }
        let token = self.transaction_token(operation, request);
        let reply = self.services.dynamodb.call(operation, body, token, &self.services.meter).await;
        after(fault, reply)
    }

    async fn serve_sqs(&self, operation: &str, body: &[u8]) -> Result<HttpResponse, ConnectorError> {
        let fault = self.fault(Service::Sqs, operation, body);
        if let Some(early) = before(fault, Service::Sqs) {
            return early;
        }
        let reply = self.services.sqs.call(operation, body, Some(&self.services.meter)).await;
        after(fault, reply)
    }
}

/// What the caller gets instead of service, if `fault` strikes before the request arrives.
fn before(fault: Fault, service: Service) -> Option<Result<HttpResponse, ConnectorError>> {
    match fault {
        Fault::None | Fault::LoseReply | Fault::CrashAfter => None,
        Fault::Refuse(refusal) => Some(Reply::refused(service, refusal).into_http()),
        Fault::DropBefore | Fault::Crash => {
            Some(Err(broken("connection closed before the request was sent")))
        }
    }
}

/// What the caller gets after service.
fn after(fault: Fault, reply: Reply) -> Result<HttpResponse, ConnectorError> {
    match fault {
        Fault::LoseReply | Fault::CrashAfter => Err(broken("connection closed before the reply arrived")),
        _ => reply.into_http(),
    }
}

fn broken(why: &'static str) -> ConnectorError {
    ConnectorError::io(why.into())
}

impl fmt::Debug for Seam {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Seam").field("faults", &self.faults).finish_non_exhaustive()
    }
}

impl HttpClient for Seam {
    fn http_connector(&self, _: &HttpConnectorSettings, _: &RuntimeComponents) -> SharedHttpConnector {
        SharedHttpConnector::new(self.clone())
    }
}

impl HttpConnector for Seam {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let target = request.headers().get("x-amz-target").and_then(|target| target.split_once('.'));
        match target {
            Some(("DynamoDB_20120810", operation)) => {
                let (seam, operation) = (self.clone(), operation.to_owned());
                let mut serving = Box::pin(async move { seam.serve_dynamodb(&operation, &request).await });
                // A request that waits for nothing is served by who only makes it.
                match (&mut serving).now_or_never() {
                    Some(served) => HttpConnectorFuture::ready(served),
                    None => HttpConnectorFuture::new_boxed(serving),
                }
            }
            Some(("AmazonSQS", operation)) => {
                let (seam, operation) = (self.clone(), operation.to_owned());
                HttpConnectorFuture::new(async move {
                    let body = request.body().bytes().unwrap_or_default();
                    seam.serve_sqs(&operation, body).await
                })
            }
            _ => {
                let why = "the request is for none of the embedded services (DynamoDB, SQS)";
                HttpConnectorFuture::ready(Err(ConnectorError::user(why.into())))
            }
        }
    }
}
