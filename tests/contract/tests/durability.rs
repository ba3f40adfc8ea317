//! The data folder: what is answered is kept, whatever ends the process, and one process has it at a time.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a failed set-up is a failed test")]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use aws_sdk_dynamodb::types::{
    AttributeDefinition, AttributeValue, BillingMode, KeySchemaElement, KeyType, ScalarAttributeType,
};
use tidegate_embedded::{Durability, Embedded, OpenError};
use tidegate_engine::clock::SystemClock;

const DIR: &str = "TIDEGATE_TEST_DATA_DIR";

/// Names how durable what the killed process writes is to be.
const DURABILITY: &str = "TIDEGATE_TEST_DURABILITY";

fn open(dir: &Path) -> Result<Embedded, OpenError> {
    Embedded::open(dir, Arc::new(SystemClock), Durability::default())
}

async fn create(embedded: &Embedded) -> String {
    let key =
        AttributeDefinition::builder().attribute_name("id").attribute_type(ScalarAttributeType::S).build();
    let create =
        embedded.dynamodb().create_table().table_name("jobs").billing_mode(BillingMode::PayPerRequest);
    let hash = KeySchemaElement::builder().attribute_name("id").key_type(KeyType::Hash).build().unwrap();
    create.attribute_definitions(key.unwrap()).key_schema(hash).send().await.unwrap();
    embedded.sqs().create_queue().queue_name("q").send().await.unwrap().queue_url.unwrap()
}

#[tokio::test]
async fn a_second_opener_is_told_that_the_folder_is_in_use() {
    let dir = tempfile::tempdir().unwrap();
    let first = open(dir.path()).unwrap();
    let client = first.sqs();
    let Err(refused) = open(dir.path()) else { panic!("two have the folder") };
    assert!(matches!(&refused, OpenError::InUse(path) if path == dir.path()), "{refused}");
    drop(first);
    assert!(open(dir.path()).is_err(), "a client that is left still uses the folder");
    drop(client);
    open(dir.path()).unwrap();
}

#[tokio::test]
async fn messages_keep_their_state_over_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let embedded = open(dir.path()).unwrap();
    let url = create(&embedded).await;
    let client = embedded.sqs();
    for body in ["taken", "waiting"] {
        client.send_message().queue_url(&url).message_body(body).send().await.unwrap();
    }
    client.send_message().queue_url(&url).message_body("delayed").delay_seconds(600).send().await.unwrap();
    let taken = client.receive_message().queue_url(&url).visibility_timeout(600).send().await.unwrap();
    drop((embedded, client));

    let embedded = open(dir.path()).unwrap();
    let client = embedded.sqs();
    let received = client.receive_message().queue_url(&url).max_number_of_messages(10).send().await.unwrap();
    assert_eq!(
        received.messages().iter().filter_map(|message| message.body()).collect::<Vec<_>>(),
        ["waiting"]
    );
    let receipt = taken.messages()[0].receipt_handle().unwrap();
    let release =
        client.change_message_visibility().queue_url(&url).receipt_handle(receipt).visibility_timeout(0);
    release.send().await.unwrap();
    let received = client.receive_message().queue_url(&url).max_number_of_messages(10).send().await.unwrap();
    assert_eq!(
        received.messages().iter().filter_map(|message| message.body()).collect::<Vec<_>>(),
        ["taken"]
    );
}

/// Not a test of its own: what the killed process runs. It tells of each write after it was answered.
#[tokio::test]
#[ignore = "run by a_killed_process_loses_nothing_it_was_told"]
async fn writer() {
    let Some(dir) = std::env::var_os(DIR) else { return };
    let durability = match std::env::var(DURABILITY).unwrap().as_str() {
        "Machine" => Durability::Machine,
        _ => Durability::Process,
    };
    let embedded = Embedded::open(Path::new(&dir), Arc::new(SystemClock), durability).unwrap();
    let url = create(&embedded).await;
    for number in 0.. {
        let id = AttributeValue::S(number.to_string());
        embedded.dynamodb().put_item().table_name("jobs").item("id", id).send().await.unwrap();
        embedded.sqs().send_message().queue_url(&url).message_body(number.to_string()).send().await.unwrap();
        println!("written {number}");
    }
}

#[tokio::test]
async fn a_killed_process_loses_nothing_it_was_told() {
    for durability in [Durability::Process, Durability::Machine] {
        killed(durability).await;
    }
}

async fn killed(durability: Durability) {
    // A name that is not one in an address.
    let folder = tempfile::tempdir().unwrap();
    let dir = tempfile::Builder::new().prefix("a?b#c%20d").tempdir_in(&folder).unwrap();
    let mut writer = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "writer", "--ignored", "--nocapture"])
        .env(DIR, dir.path())
        .env(DURABILITY, format!("{durability:?}"))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let told = BufReader::new(writer.stdout.take().unwrap()).lines().map_while(Result::ok);
    let mut told = told.filter_map(|line| Some(line.split_once("written ")?.1.parse::<usize>().unwrap()));
    let last = told.find(|number| *number >= 100).unwrap();
    writer.kill().unwrap();
    let last = told.last().unwrap_or(last);
    writer.wait().unwrap();

    let embedded = open(dir.path()).unwrap();
    let kept = embedded.dynamodb().scan().table_name("jobs").send().await.unwrap().count();
    assert!(usize::try_from(kept).unwrap() > last, "{kept} items of {}", last + 1);
    let url = embedded.sqs().get_queue_url().queue_name("q").send().await.unwrap().queue_url.unwrap();
    let mut received = 0;
    loop {
        let receive = embedded.sqs().receive_message().queue_url(&url).max_number_of_messages(10);
        match receive.send().await.unwrap().messages().len() {
            0 => break,
            more => received += more,
        }
    }
    assert!(received > last, "{received} messages of {}", last + 1);
}
