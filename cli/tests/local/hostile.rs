//! What one client's endpoint answers ends no process, and keeps no neighbour's event away. On the real binary: the
//! first answer here once ended it (review C1).

use chrono::{SecondsFormat, Utc};
use serde_json::Value;
use tidegate_client::{At, Client, Job, Target, Trigger};

use crate::endpoint::Endpoint;
use crate::process::{Tidegate, request};

const HOSTILE: [&str; 8] = [
    "HTTP/1.1 503 Service Unavailable\r\nretry-after: 9223372036854775807\r\ncontent-length: 0\r\n\r\n",
    "HTTP/1.1 429 Too Many Requests\r\nretry-after: 99999999999999999999999999\r\ncontent-length: 0\r\n\r\n",
    "HTTP/1.1 503 Service Unavailable\r\nretry-after: -9223372036854775808\r\ncontent-length: 0\r\n\r\n",
    "HTTP/1.1 503 Service Unavailable\r\nretry-after: Fri, 31 Dec 9999 23:59:59 GMT\r\ncontent-length: 0\r\n\r\n",
    "HTTP/1.1 200 OK\r\ncontent-length: 99999999999999999999\r\n\r\n",
    "HTTP/1.1 999 \u{fffd}\r\n\r\n",
    "no http at all",
    "",
];

async fn fire_at_once(client: &Client, job_id: &str, endpoint: &Endpoint) {
    let at = At::One(Utc::now().to_rfc3339_opts(SecondsFormat::Secs, true));
    let job = Job::new(Trigger::At { at }, Target::http(&endpoint.url));
    client.create_job(Some(job_id), &job).await.unwrap();
}

#[tokio::test]
async fn no_answer_of_an_endpoint_ends_the_process_or_stops_a_neighbour() {
    let folder = tempfile::tempdir().unwrap();
    let mut tidegate = Tidegate::start(Some(folder.path()), &["--output", "json"]);
    let addresses: Value = serde_json::from_str(&tidegate.first_line()).unwrap();
    let api = addresses["api"].as_str().unwrap();
    let admin = Client::new(api, addresses["admin_key"].as_str().unwrap()).unwrap();
    let mut clients = Vec::new();
    for name in ["mallory", "acme"] {
        let registered = admin.register_client(name, &[]).await.unwrap();
        clients.push(Client::new(api, registered.api_key).unwrap());
    }
    let [mallory, acme] = clients.try_into().unwrap_or_else(|_| panic!("not two clients"));
    let endpoints = HOSTILE.map(Endpoint::that_answers);
    for (number, endpoint) in endpoints.iter().enumerate() {
        fire_at_once(&mallory, &format!("hostile-{number}"), endpoint).await;
    }
    endpoints.iter().for_each(Endpoint::wait_for_a_call);
    let neighbour = Endpoint::that_answers("HTTP/1.1 204 No Content\r\n\r\n");
    fire_at_once(&acme, "neighbour", &neighbour).await;
    neighbour.wait_for_a_call();
    // Nothing was contained either: what an endpoint says is no reason to panic.
    let health = request(api, "GET /v1/health HTTP/1.1", "");
    assert!(health.contains("\"status\":\"ok\"") && health.contains("\"panics\":0"), "{health}");
}
