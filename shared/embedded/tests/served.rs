//! The queues over HTTP, where that differs from in process: the end of the server, and other protocols.
#![allow(clippy::unwrap_used, reason = "a failed set-up is a failed test")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::middleware::from_fn;
use axum::response::Response;
use axum::{Router, routing};
use chrono::Utc;
use tidegate_domain::clock::ManualClock;
use tidegate_embedded::Embedded;
use tidegate_embedded::loopback::{self, Limits, Refusal};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, oneshot};
use tokio::time::timeout;

type Serving = tokio::task::JoinHandle<std::io::Result<()>>;

fn in_memory() -> Embedded {
    Embedded::in_memory(Arc::new(ManualClock::new(Utc::now()))).unwrap()
}

/// Starts a server; returns its embedded services, a connection, what stops it, and its task.
async fn served() -> (Embedded, TcpStream, oneshot::Sender<()>, Serving) {
    let embedded = in_memory();
    let (stream, stop, server) = serve(&embedded, Limits::default()).await;
    (embedded, stream, stop, server)
}

async fn serve(embedded: &Embedded, limits: Limits) -> (TcpStream, oneshot::Sender<()>, Serving) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let stopped = async {
        let _ = stopped.await;
    };
    let server = tokio::spawn(embedded.serve_sqs(listener, limits, stopped));
    (TcpStream::connect(address).await.unwrap(), stop, server)
}

async fn post(stream: &mut TcpStream, headers: &str, body: &str) {
    let length = body.len();
    let request =
        format!("POST / HTTP/1.1\r\nhost: localhost\r\n{headers}content-length: {length}\r\n\r\n{body}");
    stream.write_all(request.as_bytes()).await.unwrap();
}

/// What comes until the server closes the connection.
async fn rest(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    // A reset is an end as well.
    let _ = stream.read_to_end(&mut bytes).await;
    String::from_utf8_lossy(&bytes).into_owned()
}

async fn reply(stream: &mut TcpStream) -> String {
    let mut bytes = vec![0; 4096];
    let read = stream.read(&mut bytes).await.unwrap();
    String::from_utf8_lossy(&bytes[..read]).into_owned()
}

#[tokio::test]
async fn a_long_poll_does_not_hold_the_end_of_the_server_up() {
    let (embedded, mut stream, stop, server) = served().await;
    embedded.sqs().create_queue().queue_name("q").send().await.unwrap();
    let started = std::time::Instant::now();
    let body = r#"{"QueueUrl":"q","WaitTimeSeconds":20}"#;
    post(&mut stream, "x-amz-target: AmazonSQS.ReceiveMessage\r\n", body).await;
    // A second request that is answered tells that the server has seen the first.
    let mut other = TcpStream::connect(stream.peer_addr().unwrap()).await.unwrap();
    post(&mut other, "x-amz-target: AmazonSQS.ListQueues\r\n", "{}").await;
    assert!(reply(&mut other).await.contains("QueueUrls"));
    stop.send(()).unwrap();
    let polled = reply(&mut stream).await;
    assert!(polled.starts_with("HTTP/1.1 200") && polled.ends_with("{}"), "{polled}");
    drop((stream, other));
    server.await.unwrap().unwrap();
    assert!(started.elapsed().as_secs() < 20);
}

#[tokio::test]
async fn the_query_protocol_is_refused_in_words() {
    let (_embedded, mut stream, stop, server) = served().await;
    post(&mut stream, "content-type: application/x-www-form-urlencoded\r\n", "Action=ListQueues").await;
    let refused = reply(&mut stream).await;
    assert!(refused.starts_with("HTTP/1.1 400") && refused.contains("JSON protocol"), "{refused}");
    stop.send(()).unwrap();
    drop(stream);
    server.await.unwrap().unwrap();
}

#[tokio::test]
async fn an_error_carries_the_code_in_both_spellings() {
    let (_embedded, mut stream, stop, server) = served().await;
    let target = "x-amz-target: AmazonSQS.SendMessage\r\n";
    post(&mut stream, target, r#"{"QueueUrl":"http://localhost/1/missing","MessageBody":"x"}"#).await;
    let refused = reply(&mut stream).await;
    assert!(
        refused.contains("x-amzn-query-error: AWS.SimpleQueueService.NonExistentQueue;Sender"),
        "{refused}"
    );
    assert!(refused.contains(r#""__type":"com.amazonaws.sqs#QueueDoesNotExist""#), "{refused}");
    stop.send(()).unwrap();
    drop(stream);
    server.await.unwrap().unwrap();
}

#[tokio::test]
async fn only_loopback_names_and_no_web_page_of_others_are_served() {
    let (embedded, mut stream, _stop, _server) = served().await;
    embedded.sqs().create_queue().queue_name("q").send().await.unwrap();
    let list = "x-amz-target: AmazonSQS.ListQueues\r\ncontent-length: 2\r\n\r\n{}";
    for (head, status, says) in [
        (
            "host: evil.example\r\n",
            "421",
            "the Host header is 'evil.example'; this server answers only to 127.0.0.1",
        ),
        ("", "421", "the Host header is missing"),
        (
            "host: localhost\r\norigin: https://evil.example\r\n",
            "403",
            "the Origin header is 'https://evil.example'",
        ),
        ("host: localhost\r\norigin: null\r\n", "403", "the Origin header is 'null'"),
        ("host: localhost\r\n", "200", "/000000000000/q"),
        ("host: localhost:9324\r\norigin: http://localhost:9324\r\n", "200", "/000000000000/q"),
    ] {
        stream.write_all(format!("POST / HTTP/1.1\r\n{head}{list}").as_bytes()).await.unwrap();
        let answer = reply(&mut stream).await;
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status}")) && answer.contains(says),
            "{head}: {answer}"
        );
    }
}

const SHORT: Duration = Duration::from_millis(50);

#[tokio::test]
async fn half_a_request_does_not_hold_its_connection() {
    let embedded = in_memory();
    let limits = Limits { headers_within: SHORT, body_within: SHORT, ..Limits::default() };
    let (mut stream, _stop, _server) = serve(&embedded, limits).await;
    stream.write_all(b"POST / HTTP/1.1\r\nhost: loc").await.unwrap();
    assert_eq!(rest(&mut stream).await, "", "half a head");

    let mut idle = TcpStream::connect(address(&embedded).await).await.unwrap();
    assert_eq!(rest(&mut idle).await, "", "no head at all");

    let mut slow = TcpStream::connect(address(&embedded).await).await.unwrap();
    let head = "POST / HTTP/1.1\r\nhost: localhost\r\nx-amz-target: AmazonSQS.ListQueues\r\ncontent-length: 9\r\n\r\n{";
    slow.write_all(head.as_bytes()).await.unwrap();
    let refused = rest(&mut slow).await;
    assert!(refused.starts_with("HTTP/1.1 4") && refused.contains("body"), "{refused}");
}

#[tokio::test]
async fn connections_beyond_the_limit_wait_for_a_place() {
    let embedded = in_memory();
    let (mut first, _stop, _server) = serve(&embedded, Limits { connections: 1, ..Limits::default() }).await;
    post(&mut first, "x-amz-target: AmazonSQS.ListQueues\r\n", "{}").await;
    assert!(reply(&mut first).await.starts_with("HTTP/1.1 200"));
    let mut second = TcpStream::connect(first.peer_addr().unwrap()).await.unwrap();
    post(&mut second, "x-amz-target: AmazonSQS.ListQueues\r\n", "{}").await;
    assert!(timeout(SHORT, reply(&mut second)).await.is_err(), "the only place is taken");
    drop(first);
    assert!(reply(&mut second).await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn a_request_says_by_whose_connection_it_came() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let told = async |ConnectInfo(peer): ConnectInfo<SocketAddr>| peer.to_string();
    let router = Router::new().route("/", routing::post(told));
    let refuse = |_: &Refusal| Response::new(Body::empty());
    tokio::spawn(loopback::serve(listener, router, Limits::default(), refuse, std::future::pending()));
    for _ in 0..2 {
        let mut stream = TcpStream::connect(address).await.unwrap();
        post(&mut stream, "x-forwarded-for: 203.0.113.7\r\n", "").await;
        let told = reply(&mut stream).await;
        assert!(told.ends_with(&stream.local_addr().unwrap().to_string()), "{told}");
    }
}

/// A server of a request that goes on when its client hangs up: it has a place for one connection, tells when it began and when it
/// is done, and waits for leave in between.
struct Slow {
    address: SocketAddr,
    began: Arc<Notify>,
    leave: Arc<Notify>,
    done: Arc<Notify>,
    stop: oneshot::Sender<()>,
    server: Serving,
}

impl Slow {
    async fn serve() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let [began, leave, done] = std::array::from_fn(|_| Arc::new(Notify::new()));
        let told = [&began, &leave, &done].map(Arc::clone);
        let answer = async move || {
            let [began, leave, done] = told;
            began.notify_one();
            leave.notified().await;
            done.notify_one();
        };
        let router = Router::new().route("/", routing::post(answer)).layer(from_fn(loopback::to_its_end));
        let refuse = |_: &Refusal| Response::new(Body::empty());
        let (stop, stopped) = oneshot::channel::<()>();
        let stopped = async { drop(stopped.await) };
        let limits = Limits { connections: 1, ..Limits::default() };
        let server = tokio::spawn(loopback::serve(listener, router, limits, refuse, stopped));
        Self { address, began, leave, done, stop, server }
    }

    /// Asks, and hangs up when the request has begun.
    async fn ask_and_hang_up(&self) {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        post(&mut stream, "", "").await;
        self.began.notified().await;
    }
}

#[tokio::test]
async fn a_request_whose_client_hangs_up_goes_on_and_keeps_its_place() {
    let slow = Slow::serve().await;
    slow.ask_and_hang_up().await;
    let mut next = TcpStream::connect(slow.address).await.unwrap();
    post(&mut next, "", "").await;
    assert!(timeout(SHORT, slow.began.notified()).await.is_err(), "the only place is taken");
    slow.leave.notify_one();
    slow.done.notified().await;
    slow.began.notified().await;
    slow.leave.notify_one();
    assert!(reply(&mut next).await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn the_end_of_the_server_waits_for_a_request_whose_client_hung_up() {
    let mut slow = Slow::serve().await;
    slow.ask_and_hang_up().await;
    slow.stop.send(()).unwrap();
    assert!(timeout(SHORT, &mut slow.server).await.is_err(), "it is still at work");
    slow.leave.notify_one();
    slow.server.await.unwrap().unwrap();
}

/// Where the queues are served.
async fn address(embedded: &Embedded) -> String {
    let made = embedded.sqs().create_queue().queue_name("where").send().await.unwrap();
    let url = made.queue_url.unwrap();
    url.trim_start_matches("http://").split('/').next().unwrap().to_owned()
}
