//! The queues over HTTP, where that differs from in process: the end of the server, and other protocols.
#![allow(clippy::unwrap_used, reason = "a failed set-up is a failed test")]

use std::sync::Arc;

use tidegate_engine::clock::SystemClock;
use tidegate_local::Embedded;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

/// Starts a server; returns its embedded services, a connection, what stops it, and its task.
async fn served() -> (Embedded, TcpStream, oneshot::Sender<()>, tokio::task::JoinHandle<std::io::Result<()>>)
{
    let embedded = Embedded::in_memory(Arc::new(SystemClock)).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = embedded.clone();
    let server = tokio::spawn(async move {
        let stopped = async {
            let _ = stopped.await;
        };
        serving.serve_sqs(listener, stopped).await
    });
    (embedded, TcpStream::connect(address).await.unwrap(), stop, server)
}

async fn post(stream: &mut TcpStream, headers: &str, body: &str) {
    let length = body.len();
    let request =
        format!("POST / HTTP/1.1\r\nhost: localhost\r\n{headers}content-length: {length}\r\n\r\n{body}");
    stream.write_all(request.as_bytes()).await.unwrap();
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
