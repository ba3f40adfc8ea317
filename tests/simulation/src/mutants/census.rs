//! Which clauses there are, and which of them decide: what a mutant cannot change needs no history of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use aws_smithy_runtime_api::client::http::{
    HttpConnector as _, HttpConnectorFuture, SharedHttpClient, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_types::body::SdkBody;
use serde_json::{Value, json};
use tidegate_embedded::around;

use super::condition::Condition;
use super::{read, remove_unused, take_off, write};

/// Clauses by the names of their mutants.
pub type Clauses = BTreeMap<String, Seen>;

/// How often a clause was seen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Seen {
    /// Requests that had it.
    pub requests: u64,
    /// Those that were refused by this clause alone. A history without any is the same with its mutant.
    pub decided: u64,
}

/// Counts clauses.
#[derive(Debug, Default)]
pub struct Census(Mutex<Clauses>);

impl Census {
    /// What was counted since the last call.
    pub fn take(&self) -> Clauses {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn count(&self, mutant: String, decides: bool) {
        let mut clauses = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = clauses.entry(mutant).or_default();
        seen.requests += 1;
        seen.decided += u64::from(decides);
    }
}

/// An HTTP client that counts the clauses of the requests to `inner`. Before each request it asks DynamoDB whether its conditions
/// hold, and whether they would without each of the clauses; `set_quiet` keeps faults from these questions.
pub fn counting(
    inner: SharedHttpClient,
    census: &Arc<Census>,
    set_quiet: impl Fn(bool) -> bool + Send + Sync + 'static,
) -> SharedHttpClient {
    let (census, set_quiet) = (Arc::clone(census), Arc::new(set_quiet));
    around(inner, move |inner, request| {
        let (inner, census, set_quiet) = (inner.clone(), Arc::clone(&census), Arc::clone(&set_quiet));
        HttpConnectorFuture::new(async move {
            let was_quiet = set_quiet(true);
            let mutants = mutants_of(&request);
            let refused = !mutants.is_empty() && !holds(&inner, &request, None).await;
            for mutant in mutants {
                let decides = refused && holds(&inner, &request, Some(&mutant)).await;
                census.count(mutant, decides);
            }
            set_quiet(was_quiet);
            inner.call(request).await
        })
    })
}

fn mutants_of(request: &HttpRequest) -> BTreeSet<String> {
    let Some((operation, mut body)) = read(request) else { return BTreeSet::new() };
    let writes = write::conditional(&operation, &mut body).into_iter();
    let clauses = writes.flat_map(|write| {
        let condition = Condition::parse(write.body["ConditionExpression"].as_str().unwrap_or_default());
        let name = write.name;
        condition.clauses().into_iter().map(move |clause| format!("{name}: {clause}"))
    });
    clauses.collect()
}

/// Whether the conditions of a request hold, without a clause: a transaction that checks them and writes nothing.
async fn holds(inner: &SharedHttpConnector, request: &HttpRequest, mutant: Option<&str>) -> bool {
    let Some(question) = question(request, mutant) else { return true };
    inner.call(question).await.is_ok_and(|reply| reply.status().is_success())
}

/// `None`: there is no condition left.
fn question(request: &HttpRequest, mutant: Option<&str>) -> Option<HttpRequest> {
    let (operation, mut body) = read(request)?;
    if let Some(mutant) = mutant {
        for write in write::conditional(&operation, &mut body) {
            take_off(mutant, write);
        }
    }
    let writes = write::conditional(&operation, &mut body).into_iter();
    let checks: Vec<Value> = writes.map(|write| json!({ "ConditionCheck": check(write.body) })).collect();
    if checks.is_empty() {
        return None;
    }
    let mut question = request.try_clone()?;
    *question.body_mut() = SdkBody::from(json!({ "TransactItems": checks }).to_string());
    let headers = question.headers_mut();
    headers.insert("x-amz-target", "DynamoDB_20120810.TransactWriteItems");
    // It is no repetition of the request.
    headers.remove("amz-sdk-invocation-id");
    Some(question)
}

fn check(write: &Value) -> Value {
    let key = if write["Key"].is_object() { &write["Key"] } else { &write["Item"] };
    let mut check = write.clone();
    if let Some(check) = check.as_object_mut() {
        check.insert("Key".to_owned(), json!({ "pk": key["pk"], "sk": key["sk"] }));
        let kept = [
            "TableName",
            "Key",
            "ConditionExpression",
            "ExpressionAttributeValues",
            "ExpressionAttributeNames",
        ];
        check.retain(|name, _| kept.contains(&&**name));
        remove_unused(check);
    }
    check
}
