//! A copy of the data folder: of one instant, with all that was answered before, whole or not there.
#![allow(clippy::unwrap_used, reason = "a failed set-up is a failed test")]

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use aws_sdk_dynamodb::types::{
    AttributeDefinition, AttributeValue, BillingMode, KeySchemaElement, KeyType, ScalarAttributeType,
};
use aws_sdk_sqs::types::QueueAttributeName;
use chrono::Utc;
use tidegate_domain::clock::ManualClock;
use tidegate_embedded::{BackupError, Durability, Embedded};

fn open(dir: &Path) -> Embedded {
    Embedded::open(dir, Arc::new(ManualClock::new(Utc::now())), Durability::default()).unwrap()
}

async fn create_table(embedded: &Embedded, name: &str) {
    let key =
        AttributeDefinition::builder().attribute_name("id").attribute_type(ScalarAttributeType::S).build();
    let hash = KeySchemaElement::builder().attribute_name("id").key_type(KeyType::Hash).build().unwrap();
    let create = embedded.dynamodb().create_table().table_name(name);
    let create = create.billing_mode(BillingMode::PayPerRequest).attribute_definitions(key.unwrap());
    create.key_schema(hash).send().await.unwrap();
}

/// Tables large enough that one after the other would be copied at instants far apart.
async fn fill(embedded: &Embedded) {
    create_table(embedded, "ballast").await;
    let dynamodb = embedded.dynamodb();
    for number in 0..20 {
        let (id, text) = (AttributeValue::S(number.to_string()), AttributeValue::S("x".repeat(300_000)));
        dynamodb.put_item().table_name("ballast").item("id", id).item("text", text).send().await.unwrap();
    }
}

/// How many rows and how many messages there are.
async fn contents(dir: &Path) -> (usize, usize) {
    let embedded = open(dir);
    let rows = embedded.dynamodb().scan().table_name("jobs").send().await.unwrap();
    assert!(rows.last_evaluated_key().is_none(), "the table has grown over a page");
    let url = embedded.sqs().get_queue_url().queue_name("q").send().await.unwrap().queue_url.unwrap();
    let name = QueueAttributeName::ApproximateNumberOfMessages;
    let asked = embedded.sqs().get_queue_attributes().queue_url(url).attribute_names(name.clone());
    let attributes = asked.send().await.unwrap().attributes.unwrap();
    (usize::try_from(rows.count()).unwrap(), attributes[&name].parse().unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_is_of_one_instant_and_has_what_was_answered_before() {
    let scratch = tempfile::tempdir().unwrap();
    let embedded = open(&scratch.path().join("data"));
    create_table(&embedded, "jobs").await;
    fill(&embedded).await;
    let queue = embedded.sqs().create_queue().queue_name("q").send().await.unwrap().queue_url.unwrap();
    let (answered, enough) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
    let writer = {
        let (dynamodb, sqs) = (embedded.dynamodb(), embedded.sqs());
        let (answered, enough) = (Arc::clone(&answered), Arc::clone(&enough));
        tokio::spawn(async move {
            // A row, then its message: at no instant are there more messages than rows, or two rows more.
            for number in 1.. {
                let id = AttributeValue::S(number.to_string());
                dynamodb.put_item().table_name("jobs").item("id", id).send().await.unwrap();
                sqs.send_message().queue_url(&queue).message_body(number.to_string()).send().await.unwrap();
                answered.store(number, Ordering::SeqCst);
                if enough.load(Ordering::SeqCst) {
                    return;
                }
            }
        })
    };
    let (mut before, mut meanwhile) = (Vec::new(), 0);
    for copy in 0..6 {
        let last = answered.load(Ordering::SeqCst);
        while answered.load(Ordering::SeqCst) == last {
            tokio::task::yield_now().await;
        }
        let asked = answered.load(Ordering::SeqCst);
        let (embedded, to) = (embedded.clone(), scratch.path().join(format!("copies/{copy}")));
        tokio::task::spawn_blocking(move || embedded.back_up(&to)).await.unwrap().unwrap();
        before.push(asked);
        meanwhile += answered.load(Ordering::SeqCst) - asked;
    }
    enough.store(true, Ordering::SeqCst);
    writer.await.unwrap();
    for (copy, before) in before.iter().enumerate() {
        let (rows, messages) = contents(&scratch.path().join(format!("copies/{copy}"))).await;
        assert!(messages >= *before, "{messages} messages where {before} were sent before");
        assert!(rows == messages || rows == messages + 1, "{rows} rows and {messages} messages");
    }
    assert!(meanwhile > 0, "nothing was written while copies were made");
}

#[tokio::test]
async fn a_backup_is_a_data_folder_of_its_owners_alone_with_the_keys() {
    let scratch = tempfile::tempdir().unwrap();
    let (data, to) = (scratch.path().join("data"), scratch.path().join("a?b#c%20d"));
    let embedded = open(&data);
    create_table(&embedded, "jobs").await;
    fs::write(data.join("admin-key"), "a key\n").unwrap();
    fs::write(data.join("notes.txt"), "not ours").unwrap();
    fs::create_dir(&to).unwrap();
    let backup = embedded.back_up(&to).unwrap();
    let mut files: Vec<_> = fs::read_dir(&to).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    files.sort();
    assert_eq!(files, ["admin-key", "dynamodb.db", "sqs.db"]);
    let size = |name| fs::metadata(to.join(name)).unwrap().len();
    assert_eq!(backup.bytes, size("dynamodb.db") + size("sqs.db"));
    assert_eq!(fs::read_to_string(to.join("admin-key")).unwrap(), "a key\n");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&to), 0o700);
        for file in files {
            assert_eq!(mode(&to.join(&file)), 0o600, "{}", file.display());
        }
    }
    assert_eq!(open(&to).dynamodb().list_tables().send().await.unwrap().table_names(), ["jobs"]);
}

#[test]
fn what_cannot_become_a_backup_is_refused_and_left_as_it_is() {
    let scratch = tempfile::tempdir().unwrap();
    let data = scratch.path().join("data");
    let embedded = open(&data);
    let (full, file) = (scratch.path().join("full"), scratch.path().join("file"));
    fs::create_dir(&full).unwrap();
    fs::write(full.join("theirs"), "kept").unwrap();
    fs::write(&file, "kept").unwrap();
    for taken in [&full, &file, &file.join("below")] {
        let refused = embedded.back_up(taken).unwrap_err();
        assert!(matches!(&refused, BackupError::Taken(path) if path == taken), "{refused}");
    }
    for within in [data.join("copy"), data.clone()] {
        let refused = embedded.back_up(&within).unwrap_err();
        assert!(matches!(&refused, BackupError::Within(path) if *path == within), "{refused}");
    }
    let in_memory = Embedded::in_memory(Arc::new(ManualClock::new(Utc::now()))).unwrap();
    assert!(matches!(in_memory.back_up(&scratch.path().join("copy")), Err(BackupError::InMemory)));
    assert_eq!(fs::read_to_string(full.join("theirs")).unwrap(), "kept");
    assert_eq!(fs::read_to_string(&file).unwrap(), "kept");
    assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 3, "something was left");
}

#[test]
fn a_backup_that_fails_halfway_leaves_nothing() {
    let scratch = tempfile::tempdir().unwrap();
    let data = scratch.path().join("data");
    let embedded = open(&data);
    // It comes after tables and queues, and cannot be read.
    fs::create_dir(data.join("admin-key")).unwrap();
    let failed = embedded.back_up(&scratch.path().join("copy")).unwrap_err();
    assert!(matches!(failed, BackupError::Folder(..)), "{failed}");
    assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 1, "something was left");
    fs::remove_dir(data.join("admin-key")).unwrap();
    embedded.back_up(&scratch.path().join("copy")).unwrap();
}
