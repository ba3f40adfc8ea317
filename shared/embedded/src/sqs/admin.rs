//! What is done with queues as a whole: create, find, list, describe, change, purge, delete, tag.

use std::collections::BTreeMap;

use rusqlite::params;
use serde_json::{Value, json};

use super::attributes::Attributes;
use super::error::{Code, Failure, Refused};
use super::limits;
use super::name::{self, QueueName};
use super::queue::Queue;
use super::store::{Desk, Store};
use super::wire::{CreateQueue, ListQueues};

/// Creates a queue, or finds the one that is as described; returns its name.
pub(super) fn create(store: &mut Store, request: CreateQueue, now_ms: i64) -> Result<QueueName, Failure> {
    let name = QueueName::parse(&request.queue_name)?;
    let says_fifo = request.attributes.get("FifoQueue").is_some_and(|value| value == "true");
    if name.is_fifo() != says_fifo {
        let reason = "The name of a FIFO queue can only include alphanumeric characters, hyphens, or underscores, must end \
                      with .fifo suffix and be 1 to 80 in length.";
        return Err(Refused::value(name.as_str(), "QueueName", reason).into());
    }
    if let Some(queue) = store.queues.get(name.as_str()) {
        if queue.attributes.agree_with(&request.attributes, says_fifo)? {
            return Ok(name);
        }
        let message = "A queue already exists with the same name and a different value for an attribute.";
        return Err(Refused::new(Code::QueueNameExists, message).into());
    }
    let attributes = Attributes::default().with(&request.attributes, says_fifo)?;
    check_redrive(store, &name, &attributes)?;
    check_tags(&request.tags)?;
    store.conn.execute(
        "INSERT INTO queues (name, attributes, tags, created_at_ms, modified_at_ms) VALUES (?1, ?2, ?3, ?4, ?4)",
        params![name.as_str(), json!(attributes.given()).to_string(), json!(request.tags).to_string(), now_ms],
    )?;
    let mut queue = Queue::new(store.conn.last_insert_rowid(), name.clone(), attributes, now_ms);
    queue.tags = request.tags;
    store.queues.insert(name.as_str().to_owned(), queue);
    Ok(name)
}

fn check_redrive(store: &Store, source: &QueueName, attributes: &Attributes) -> Result<(), Refused> {
    let Some(redrive) = &attributes.redrive else { return Ok(()) };
    let refused = |reason: &str| Err(Refused::value(redrive.target.arn(), "RedrivePolicy", reason));
    if redrive.target.is_fifo() != source.is_fifo() {
        return refused("Dead-letter queue must be same type of queue as the source.");
    }
    if !store.queues.contains_key(redrive.target.as_str()) {
        return refused("Dead letter target does not exist.");
    }
    Ok(())
}

/// Changes attributes of the queue at `url`.
pub(super) fn set_attributes(
    store: &mut Store,
    url: &str,
    changes: &BTreeMap<String, String>,
    now_ms: i64,
) -> Result<(), Failure> {
    let queue = find(store, url)?;
    let attributes = queue.attributes.with(changes, queue.is_fifo())?;
    check_redrive(store, &queue.name, &attributes)?;
    store.conn.execute(
        "UPDATE queues SET attributes = ?2, modified_at_ms = ?3 WHERE id = ?1",
        params![queue.id, json!(attributes.given()).to_string(), now_ms],
    )?;
    let queue = find_mut(store, url)?;
    (queue.attributes, queue.modified_at_ms) = (attributes, now_ms);
    Ok(())
}

/// The attributes of a queue that `names` ask for, the counts of its messages among them.
pub(super) fn attributes(desk: &mut Desk<'_>, names: &[String]) -> Result<Value, Failure> {
    super::receive::sweep(desk)?;
    let (queue, now_ms) = (&desk.queue, desk.now_ms);
    // Each state by itself: a state as a literal lets SQLite use its partial index.
    let (visible, hidden, delayed): (i64, i64, i64) = desk.conn.query_row(
        "WITH later AS (
            SELECT visible_at_ms > ?2 AS waits, receive_count > 0 AS received, count FROM messages
            WHERE queue_id = ?1 AND state = 1
            UNION ALL
            SELECT visible_at_ms > ?2, receive_count > 0, count FROM messages WHERE queue_id = ?1 AND state = 2
         )
         SELECT coalesce((SELECT sum(count) FROM messages WHERE queue_id = ?1 AND state = 0), 0)
                    + coalesce(sum(count) FILTER (WHERE NOT waits), 0),
                coalesce(sum(count) FILTER (WHERE waits AND received), 0),
                coalesce(sum(count) FILTER (WHERE waits AND NOT received), 0) FROM later",
        params![queue.id, now_ms],
        |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
    )?;
    let mut all = queue.attributes.listed(queue.is_fifo());
    all.extend([
        ("QueueArn".to_owned(), queue.name.arn()),
        ("ApproximateNumberOfMessages".to_owned(), visible.to_string()),
        ("ApproximateNumberOfMessagesNotVisible".to_owned(), hidden.to_string()),
        ("ApproximateNumberOfMessagesDelayed".to_owned(), delayed.to_string()),
        ("CreatedTimestamp".to_owned(), (queue.created_at_ms / 1000).to_string()),
        ("LastModifiedTimestamp".to_owned(), (queue.modified_at_ms / 1000).to_string()),
    ]);
    if names.iter().any(|name| name == "All") {
        return Ok(json!({ "Attributes": all }));
    }
    const OPTIONAL: [&str; 9] = [
        "Policy",
        "RedrivePolicy",
        "RedriveAllowPolicy",
        "KmsMasterKeyId",
        "KmsDataKeyReusePeriodSeconds",
        "FifoQueue",
        "ContentBasedDeduplication",
        "DeduplicationScope",
        "FifoThroughputLimit",
    ];
    let unknown = |name: &&String| !all.contains_key(*name) && !OPTIONAL.contains(&name.as_str());
    if let Some(name) = names.iter().find(unknown) {
        return Err(Refused::new(Code::InvalidAttributeName, format!("Unknown Attribute {name}.")).into());
    }
    all.retain(|name, _| names.contains(name));
    Ok(if all.is_empty() { json!({}) } else { json!({ "Attributes": all }) })
}

/// Deletes every message of a queue.
pub(super) fn purge(desk: &mut Desk<'_>) -> Result<(), Failure> {
    if desk.now_ms - desk.queue.purged_at_ms < limits::PURGE_MS {
        let message = format!(
            "Only one PurgeQueue operation on {} is allowed every 60 seconds.",
            desk.queue.name.as_str()
        );
        return Err(Refused::new(Code::PurgeQueueInProgress, message).into());
    }
    desk.conn.execute("DELETE FROM messages WHERE queue_id = ?1", [desk.queue.id])?;
    desk.conn.execute("DELETE FROM groups WHERE queue_id = ?1", [desk.queue.id])?;
    desk.conn.execute("UPDATE queues SET purged_at_ms = ?2 WHERE id = ?1", [desk.queue.id, desk.now_ms])?;
    desk.queue.purged_at_ms = desk.now_ms;
    desk.queue.recall(desk.conn)?;
    Ok(())
}

/// Deletes a queue and everything in it; those who wait for its messages learn that it is gone.
pub(super) fn delete(store: &mut Store, url: &str) -> Result<(), Failure> {
    let id = find(store, url)?.id;
    let transaction = store.conn.transaction()?;
    for table in ["messages", "groups", "deduplication"] {
        transaction.execute(&format!("DELETE FROM {table} WHERE queue_id = ?1"), [id])?;
    }
    transaction.execute("DELETE FROM queues WHERE id = ?1", [id])?;
    transaction.commit()?;
    if let Some(queue) = store.queues.remove(name::in_url(url)?) {
        queue.wake.notify_waiters();
    }
    Ok(())
}

/// The names of the queues that a list shows, and the token of its next page.
pub(super) fn list(
    store: &Store,
    request: &ListQueues,
    visible: impl Fn(&QueueName) -> bool,
) -> Result<(Vec<QueueName>, Option<String>), Refused> {
    if request.max_results.is_some_and(|most| !(1..=1000).contains(&most)) {
        return Err(Refused::new(Code::InvalidParameterValue, "MaxResults must be between 1 and 1000."));
    }
    let after = request.next_token.as_deref().unwrap_or_default();
    let wanted = |name: &&QueueName| {
        name.as_str().starts_with(&request.queue_name_prefix) && name.as_str() > after && visible(name)
    };
    let mut names: Vec<QueueName> =
        store.queues.values().map(|queue| &queue.name).filter(wanted).cloned().collect();
    names.sort_unstable();
    let more = names.len() > request.max_results.unwrap_or(1000);
    names.truncate(request.max_results.unwrap_or(1000));
    // Without MaxResults there is no paging: AWS cuts the list at 1,000.
    let next =
        names.last().filter(|_| more && request.max_results.is_some()).map(|name| name.as_str().to_owned());
    Ok((names, next))
}

/// The queues whose dead letters go to the queue at `url`.
pub(super) fn dead_letter_sources(store: &Store, url: &str) -> Result<Vec<QueueName>, Refused> {
    let target = &find(store, url)?.name;
    let redrives_here =
        |queue: &&Queue| queue.attributes.redrive.as_ref().is_some_and(|redrive| redrive.target == *target);
    let mut names: Vec<QueueName> =
        store.queues.values().filter(redrives_here).map(|queue| queue.name.clone()).collect();
    names.sort_unstable();
    Ok(names)
}

/// Changes the tags of the queue at `url`.
pub(super) fn change_tags(
    store: &mut Store,
    url: &str,
    change: impl FnOnce(&mut BTreeMap<String, String>),
) -> Result<(), Failure> {
    let queue = find(store, url)?;
    let mut tags = queue.tags.clone();
    change(&mut tags);
    check_tags(&tags)?;
    store
        .conn
        .execute("UPDATE queues SET tags = ?2 WHERE id = ?1", params![queue.id, json!(tags).to_string()])?;
    find_mut(store, url)?.tags = tags;
    Ok(())
}

fn check_tags(tags: &BTreeMap<String, String>) -> Result<(), Refused> {
    if tags.len() <= limits::TAGS {
        return Ok(());
    }
    Err(Refused::new(
        Code::InvalidParameterValue,
        format!("Too many tags added for queue: the limit is {}.", limits::TAGS),
    ))
}

/// The queue that is called `name`.
pub(super) fn named(store: &Store, name: &str) -> Result<QueueName, Refused> {
    if name.is_empty() {
        return Err(Refused::missing("QueueName"));
    }
    store.queues.get(name).map(|queue| queue.name.clone()).ok_or_else(Refused::no_such_queue)
}

/// The queue at `url`.
pub(super) fn find<'a>(store: &'a Store, url: &str) -> Result<&'a Queue, Refused> {
    store.queues.get(name::in_url(url)?).ok_or_else(Refused::no_such_queue)
}

fn find_mut<'a>(store: &'a mut Store, url: &str) -> Result<&'a mut Queue, Refused> {
    store.queues.get_mut(name::in_url(url)?).ok_or_else(Refused::no_such_queue)
}
