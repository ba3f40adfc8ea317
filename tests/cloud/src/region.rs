//! The services of a region as its processes reach them: every request passes the model.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use aws_smithy_runtime_api::client::http::{HttpConnectorFuture, SharedHttpClient};
use aws_smithy_runtime_api::client::result::ConnectorError;
use tidegate_embedded::{ClientOptions, Embedded, Service, around};
use tidegate_engine::Engine;
use tidegate_engine::random::SeededRandom;
use tidegate_store::Store;
use tidegate_testkit::{Deployment, Process};

use crate::clock::VirtualClock;
use crate::dice::Dice;
use crate::dynamodb::DynamoDb;
use crate::function::Function;
use crate::processor::Processor;
use crate::roles::Roles;
use crate::sqs::Sqs;
use crate::version::Version;

/// What all processes of a region reach.
pub(crate) struct Region {
    pub(crate) clock: VirtualClock,
    pub(crate) dice: Arc<Dice>,
    pub(crate) embedded: Embedded,
    pub(crate) deployment: Deployment,
    pub(crate) dynamodb: Arc<DynamoDb>,
    /// A process whose requests go past the model.
    pub(crate) past: Process,
    pub(crate) sqs: Sqs,
    pub(crate) roles: Roles,
    pub(crate) seeds: Mutex<fastrand::Rng>,
}

/// A function that makes requests, and the processor that they pass.
#[derive(Clone)]
pub(crate) struct Caller {
    pub(crate) function: Function,
    pub(crate) processor: Arc<Processor>,
}

impl Region {
    /// An engine of a new process of a version.
    pub(crate) fn engine(self: &Arc<Self>, version: Version, caller: Caller) -> Result<Engine> {
        Ok(self.process(version, Some(caller))?.start(Arc::new(self.clock)))
    }

    /// The tables, as a program outside of Lambda sees them.
    pub(crate) fn store(self: &Arc<Self>) -> Result<Store> {
        Ok(self.process(Version::This, None)?.store())
    }

    /// A new process, whose requests pass the model; those of a function are held against its role before that.
    fn process(self: &Arc<Self>, version: Version, caller: Option<Caller>) -> Result<Process> {
        let options = ClientOptions {
            retry: tidegate_aws::retries(),
            timeouts: tidegate_aws::timeouts(),
            faults: None,
        };
        let seed = self.seeds.lock().unwrap_or_else(PoisonError::into_inner).u64(..);
        let process = self.deployment.process_with(&self.embedded, &options).random(SeededRandom::new(seed));
        let process =
            process.dynamodb_through(|http| self.before(http, Service::DynamoDb, version, caller.clone()))?;
        process.sqs_through(|http| self.before(http, Service::Sqs, version, caller))
    }

    /// Whether a queue, by its URL, is one of those whose messages only we write and read.
    fn is_own(&self, queue_url: &str) -> bool {
        let own = self.deployment.config();
        [&own.dispatch_queue_url, &own.scan_queue_url].iter().any(|url| *url == queue_url)
    }

    /// A client of the queues of somebody else: a poller, a consumer.
    pub(crate) fn queues(self: &Arc<Self>) -> Result<aws_sdk_sqs::Client> {
        let process = self.deployment.process();
        Ok(process.sqs_through(|http| self.before(http, Service::Sqs, Version::This, None))?.sqs().clone())
    }

    fn before(
        self: &Arc<Self>,
        http: SharedHttpClient,
        service: Service,
        version: Version,
        caller: Option<Caller>,
    ) -> SharedHttpClient {
        let region = Arc::downgrade(self);
        around(http, move |inner, request| {
            let (inner, region, caller) = (inner.clone(), region.clone(), caller.clone());
            HttpConnectorFuture::new(async move {
                if let Some(caller) = &caller {
                    caller.processor.request().await;
                }
                let Some(region) = region.upgrade() else {
                    return Err(ConnectorError::io("the region is gone".into()));
                };
                if let Some(refusal) =
                    caller.and_then(|caller| region.roles.refusal(caller.function, service, &request))
                {
                    return refusal;
                }
                match service {
                    Service::DynamoDb => {
                        let answer = region.dynamodb.serve(inner, version.writes_rows(request)).await;
                        version.reads_rows(answer)
                    }
                    Service::Sqs => {
                        let request = version.writes_messages(request, |url| region.is_own(url));
                        region.sqs.serve(inner, request).await
                    }
                }
            })
        })
    }
}
