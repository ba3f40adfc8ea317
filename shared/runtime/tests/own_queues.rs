//! The queues of Tidegate itself, as another process meets them.
#![allow(clippy::unwrap_used, reason = "a failed set-up is a failed test")]

use std::net::SocketAddr;

use tidegate_embedded::loopback::Limits;
use tidegate_runtime::{Options, Place, Runtime};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Sends one request to the queues at `address`; returns the whole answer.
async fn post(address: SocketAddr, operation: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let length = body.len();
    let request = format!(
        "POST / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nx-amz-target: AmazonSQS.{operation}\r\n\
         content-length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn the_queues_of_tidegate_itself_are_out_of_reach_but_for_releases() {
    let runtime = Runtime::start(Options::new(Place::Memory)).await.unwrap();
    runtime.create_queue(&"work".parse().unwrap()).await.unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(runtime.embedded().serve_sqs(listener, Limits::default(), std::future::pending()));
    let call = async |operation: &str, body: &str| post(address, operation, body).await;
    let listed = call("ListQueues", "{}").await;
    assert!(listed.contains("/work\"]") && !listed.contains("tidegate-"), "{listed}");
    let missing = call("ReceiveMessage", r#"{"QueueUrl":"/none"}"#).await;
    let body = |answer: &str| answer.rsplit("\r\n").next().unwrap().to_owned();
    for queue in ["dispatch", "dispatch-dead-letters", "scan", "release-dead-letters"] {
        let url =
            format!(r#"{{"QueueUrl":"http://127.0.0.1/000000000000/tidegate-{queue}","MessageBody":"x"}}"#);
        for operation in ["SendMessage", "ReceiveMessage", "PurgeQueue", "DeleteQueue", "GetQueueAttributes"]
        {
            assert_eq!(body(&call(operation, &url).await), body(&missing), "{operation} {queue}");
        }
        let by_name = call("GetQueueUrl", &format!(r#"{{"QueueName":"tidegate-{queue}"}}"#)).await;
        assert_eq!(body(&by_name), body(&missing), "{queue}");
    }
    let release = r#"{"QueueUrl":"http://127.0.0.1/000000000000/tidegate-release","MessageBody":"x"}"#;
    assert!(call("SendMessage", release).await.contains("MessageId"));
    assert_eq!(body(&call("ReceiveMessage", release).await), body(&missing));
    assert!(call("GetQueueUrl", r#"{"QueueName":"tidegate-release"}"#).await.contains("/tidegate-release"));
    runtime.stop().await;
}
