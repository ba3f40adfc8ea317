//! The REST API, called over HTTP.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use reqwest::{Client, Method, Url};
use serde_json::{Value, json};

use crate::deployed::Deployed;

const ANSWER_WITHIN: Duration = Duration::from_secs(30);

/// The API, called with one key.
#[derive(Debug, Clone)]
pub struct Api {
    http: Client,
    base: Url,
    key: Option<String>,
}

/// What the API answered.
#[derive(Debug)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The media type, without parameters.
    pub content_type: String,
    /// The body, null when it is empty.
    pub body: Value,
}

/// A client that was just registered.
#[derive(Debug)]
pub struct Registered {
    /// The API with the new client's key.
    pub api: Api,
    /// The new client's key itself.
    pub key: String,
    /// What HTTP deliveries to this client are signed with.
    pub webhook_secret: String,
}

impl Api {
    /// The API with no key at all.
    ///
    /// # Errors
    /// When no HTTP client can be made.
    pub fn without_key(deployed: &Deployed) -> Result<Self> {
        // A second test in this process finds it installed, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut http = Client::builder().timeout(ANSWER_WITHIN);
        if let (Some(address), Some(host)) = (deployed.connect_to(), deployed.api_url().host_str()) {
            http = http.resolve(host, address);
        }
        Ok(Self { http: http.build()?, base: deployed.api_url().clone(), key: None })
    }

    /// The same API with another key.
    pub fn with_key(&self, key: &str) -> Self {
        Self { key: Some(key.to_owned()), ..self.clone() }
    }

    /// Registers a client with the admin key, whose jobs may name any address.
    ///
    /// # Errors
    /// When the API does not answer as documented.
    pub async fn register(deployed: &Deployed, client_id: &str) -> Result<Registered> {
        let admin = Self::without_key(deployed)?.with_key(deployed.admin_key());
        let body = admin
            .post("/v1/clients", json!({"client_id": client_id, "allowed_targets": ["*"]}))
            .await?
            .expect(201)?;
        ensure!(body["client_id"] == client_id, "registered {client_id}, got {body}");
        let key = body["api_key"].as_str().context("a new client gets no key")?;
        let secret = body["webhook_secret"].as_str().context("a new client gets no webhook secret")?;
        Ok(Registered { api: admin.with_key(key), key: key.to_owned(), webhook_secret: secret.to_owned() })
    }

    /// Sends a GET.
    ///
    /// # Errors
    /// When there is no answer or it holds no JSON.
    pub async fn get(&self, path: &str) -> Result<Answer> {
        self.call(Method::GET, path, None).await
    }

    /// Sends a POST with a JSON body.
    ///
    /// # Errors
    /// When there is no answer or it holds no JSON.
    pub async fn post(&self, path: &str, body: Value) -> Result<Answer> {
        self.call(Method::POST, path, Some(body.to_string())).await
    }

    /// Sends a PUT with a JSON body.
    ///
    /// # Errors
    /// When there is no answer or it holds no JSON.
    pub async fn put(&self, path: &str, body: Value) -> Result<Answer> {
        self.call(Method::PUT, path, Some(body.to_string())).await
    }

    /// Sends a DELETE.
    ///
    /// # Errors
    /// When there is no answer or it holds no JSON.
    pub async fn delete(&self, path: &str) -> Result<Answer> {
        self.call(Method::DELETE, path, None).await
    }

    /// Releases one token, which must be held.
    ///
    /// # Errors
    /// When the API does not answer that it was released.
    pub async fn release(&self, token: &str) -> Result<()> {
        let body = self.post("/v1/tokens/release", json!({"tokens": [token]})).await?.expect(200)?;
        let expected = json!([{"token": token, "status": "released"}]);
        ensure!(body["results"] == expected, "released {token}, got {body}");
        Ok(())
    }

    /// Sends a request with a body as it is, be it JSON or not.
    ///
    /// # Errors
    /// When there is no answer or it holds no JSON.
    pub async fn call(&self, method: Method, path: &str, body: Option<String>) -> Result<Answer> {
        let mut request = self.http.request(method.clone(), self.base.join(path)?);
        if let Some(key) = &self.key {
            request = request.bearer_auth(key);
        }
        if let Some(body) = body {
            request = request.header("content-type", "application/json").body(body);
        }
        let answer = request.send().await.with_context(|| format!("no answer to {method} {path}"))?;
        let status = answer.status().as_u16();
        let declared =
            answer.headers().get("content-type").and_then(|value| value.to_str().ok()).unwrap_or("");
        let content_type = declared.split(';').next().unwrap_or("").trim().to_owned();
        let text = answer.text().await?;
        let body = match text.as_str() {
            "" => Value::Null,
            text => serde_json::from_str(text).with_context(|| {
                format!("{method} {path} answered {status} with something else than JSON: {text}")
            })?,
        };
        Ok(Answer { status, content_type, body })
    }
}

impl Answer {
    /// The body of an answer with this status.
    ///
    /// # Errors
    /// When it has another status.
    pub fn expect(self, status: u16) -> Result<Value> {
        ensure!(self.status == status, "wanted {status}, got {}: {}", self.status, self.body);
        Ok(self.body)
    }
}
