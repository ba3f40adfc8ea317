//! The REST API over a world, without a socket.

use axum::Router;
use axum::body::{Body, Bytes};
use http::{Request, StatusCode, request};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tidegate_api::{ApiState, router};
use tidegate_simulation::World;
use tidegate_store::KeyHash;
use tower::ServiceExt as _;

/// The API, and the key of its only client.
pub struct Api {
    router: Router,
    key: String,
}

impl Api {
    /// The API of a world, with a client registered.
    pub async fn over(world: &World) -> Self {
        let admin = "the-admin-key".to_owned();
        let router = router(ApiState::new(world.engine.clone(), Some(KeyHash::of(&admin).as_str())));
        let mut api = Self { router, key: admin };
        let (status, body) = api.post("/v1/clients", &json!({"client_id": "acme"})).await;
        assert_eq!(status, StatusCode::CREATED, "{body}");
        api.key = body["api_key"].as_str().unwrap().to_owned();
        api
    }

    pub async fn post(&self, path: &str, body: &Value) -> (StatusCode, Value) {
        let request = Request::post(path).header("content-type", "application/json");
        let (status, bytes) = self.call(request, Body::from(body.to_string())).await;
        (status, serde_json::from_slice(&bytes).unwrap())
    }

    /// Deletes what is there.
    pub async fn delete(&self, path: &str) {
        let (status, _) = self.call(Request::delete(path), Body::empty()).await;
        assert_eq!(status, StatusCode::NO_CONTENT, "{path}");
    }

    async fn call(&self, request: request::Builder, body: Body) -> (StatusCode, Bytes) {
        let request = request.header("authorization", format!("Bearer {}", self.key)).body(body).unwrap();
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        (parts.status, body.collect().await.unwrap().to_bytes())
    }
}
