//! An environment of a function: an engine that remembers, a share of a processor, and the requests of one invocation.

use std::sync::Arc;

use axum::Router;
use http_body_util::BodyExt as _;
use serde_json::Value;
use tidegate_api::ApiState;
use tidegate_aws::{Records, before, emit};
use tidegate_engine::Engine;
use tower::ServiceExt as _;

use super::invocation::{Answer, Failed, Work};
use crate::function::Function;
use crate::processor::Processor;
use crate::version::Version;

/// An environment. Between two invocations it stands still.
pub(crate) struct Environment {
    engine: Engine,
    version: Version,
    router: Router,
    processor: Arc<Processor>,
}

impl Environment {
    /// A new one with this engine of a version, which remembers nothing.
    pub(super) fn new(
        engine: Engine,
        version: Version,
        admin_key_sha256: &str,
        processor: Arc<Processor>,
    ) -> Self {
        let state = ApiState::new(engine.clone(), Some(admin_key_sha256)).with_targets_named();
        let router = tidegate_api::router(state);
        Self { engine, version, router, processor }
    }

    /// An invocation begins; it is killed after so many requests.
    pub(super) fn begin(&self, killed_after: Option<u64>) {
        self.processor.begin(killed_after);
    }

    /// Ends when the invocation is killed.
    pub(super) async fn killed(&self) {
        self.processor.killed().await;
    }

    /// What the function does, as its main does it. `deadline_ms`: when it is stopped, as its context says.
    pub(super) async fn run(
        &self,
        function: Function,
        work: Work,
        deadline_ms: u64,
    ) -> Result<Answer, Failed> {
        before(deadline_ms, self.engine.clock().now(), self.run_to_its_end(function, work)).await
    }

    async fn run_to_its_end(&self, function: Function, work: Work) -> Result<Answer, Failed> {
        match (function, work) {
            (Function::Emitter, Work::Event(event)) => {
                let answer = emit(&self.engine, self.version.reads_messages(event))
                    .await
                    .map_err(|_| Failed::Error)?;
                Ok(Answer::Event(serde_json::to_value(answer).map_err(|_| Failed::Error)?))
            }
            (_, Work::Event(event)) => {
                let event = self.version.reads_messages(event);
                let records: Records = serde_json::from_value(event).map_err(|_| Failed::Error)?;
                let answer = records.handle(&self.engine).await;
                Ok(Answer::Event(serde_json::to_value(answer).map_err(|_| Failed::Error)?))
            }
            (_, Work::Call(request)) => {
                let Ok(answer) = self.router.clone().oneshot(*request).await;
                let status = answer.status();
                let body = answer.into_body().collect().await.map_err(|_| Failed::Error)?.to_bytes();
                Ok(Answer::Call(status, serde_json::from_slice(&body).unwrap_or(Value::Null)))
            }
        }
    }
}
