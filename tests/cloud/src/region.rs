//! The services of a region as its processes reach them: every request passes the model.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use aws_smithy_runtime_api::client::http::{HttpConnectorFuture, SharedHttpClient};
use aws_smithy_runtime_api::client::result::ConnectorError;
use tidegate_embedded::{ClientOptions, Embedded, Service, around};
use tidegate_engine::Engine;
use tidegate_engine::random::SeededRandom;
use tidegate_testkit::Deployment;

use crate::clock::VirtualClock;
use crate::dice::Dice;
use crate::dynamodb::DynamoDb;
use crate::processor::Processor;
use crate::sqs::Sqs;

/// What all processes of a region reach.
pub(crate) struct Region {
    pub(crate) clock: VirtualClock,
    pub(crate) dice: Arc<Dice>,
    pub(crate) embedded: Embedded,
    pub(crate) deployment: Deployment,
    pub(crate) dynamodb: DynamoDb,
    pub(crate) sqs: Sqs,
    pub(crate) seeds: Mutex<fastrand::Rng>,
}

impl Region {
    /// An engine of a new process, whose requests pass the model, and this processor before that.
    pub(crate) fn process(self: &Arc<Self>, processor: Option<Arc<Processor>>) -> Result<Engine> {
        let options = ClientOptions {
            retry: tidegate_aws::retries(),
            timeouts: tidegate_aws::timeouts(),
            faults: None,
        };
        let seed = self.seeds.lock().unwrap_or_else(PoisonError::into_inner).u64(..);
        let process = self.deployment.process_with(&self.embedded, &options).random(SeededRandom::new(seed));
        let process =
            process.dynamodb_through(|http| self.before(http, Service::DynamoDb, processor.clone()))?;
        let process = process.sqs_through(|http| self.before(http, Service::Sqs, processor))?;
        Ok(process.start(Arc::new(self.clock)))
    }

    /// A client of the queues of somebody else: a poller, a consumer.
    pub(crate) fn queues(self: &Arc<Self>) -> Result<aws_sdk_sqs::Client> {
        let process = self.deployment.process();
        Ok(process.sqs_through(|http| self.before(http, Service::Sqs, None))?.sqs().clone())
    }

    fn before(
        self: &Arc<Self>,
        http: SharedHttpClient,
        service: Service,
        processor: Option<Arc<Processor>>,
    ) -> SharedHttpClient {
        let region = Arc::downgrade(self);
        around(http, move |inner, request| {
            let (inner, region, processor) = (inner.clone(), region.clone(), processor.clone());
            HttpConnectorFuture::new(async move {
                if let Some(processor) = processor {
                    processor.request().await;
                }
                let Some(region) = region.upgrade() else {
                    return Err(ConnectorError::io("the region is gone".into()));
                };
                match service {
                    Service::DynamoDb => region.dynamodb.serve(inner, request).await,
                    Service::Sqs => region.sqs.serve(inner, request).await,
                }
            })
        })
    }
}
