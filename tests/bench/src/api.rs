//! The API's router in this process, called as its clients do.

use anyhow::{Context as _, Result, bail};
use axum::Router;
use axum::body::Body;
use http::{Method, Request};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tidegate_api::{ApiState, router};
use tidegate_engine::Engine;
use tidegate_store::KeyHash;
use tower::ServiceExt as _;

use crate::client;

const ADMIN_KEY: &str = "the key of this benchmark only";

/// The API over an engine, with one client.
#[derive(Clone)]
pub(crate) struct Api {
    router: Router,
    key: String,
}

impl Api {
    /// Registers the client.
    pub(crate) async fn over(engine: &Engine) -> Result<Self> {
        let router = router(ApiState::new(engine.clone(), Some(KeyHash::of(ADMIN_KEY).as_str())));
        let admin = Self { router, key: ADMIN_KEY.to_owned() };
        let body = json!({"client_id": client()?.as_str()});
        let registered = admin.call(Method::POST, "/v1/clients", Some(&body)).await?;
        let key = registered["api_key"].as_str().context("a client without a key")?.to_owned();
        Ok(Self { key, ..admin })
    }

    /// A call that must succeed, and its answer.
    pub(crate) async fn call(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Value> {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("authorization", format!("Bearer {}", self.key))
            .header("content-type", "application/json")
            .body(body.map_or_else(Body::empty, |body| Body::from(body.to_string())))?;
        let response = self.router.clone().oneshot(request).await?;
        let status = response.status();
        let body = response.into_body().collect().await?.to_bytes();
        if !status.is_success() {
            bail!("{path} answered {status}: {}", String::from_utf8_lossy(&body));
        }
        Ok(serde_json::from_slice(&body)?)
    }

    /// The same by POST.
    pub(crate) async fn post(&self, path: &str, body: &Value) -> Result<Value> {
        self.call(Method::POST, path, Some(body)).await
    }
}
