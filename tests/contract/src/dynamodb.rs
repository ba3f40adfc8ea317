//! What Tidegate relies on from DynamoDB, as cases that run wherever it stands: conditions, transactions, ranges, batches.
//!
//! Deliberately absent: capacity and time to live, which only the embedded one shows at once (`tests/dynamodb.rs`).

use std::collections::HashMap;
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::operation::put_item::PutItemError;
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::types::{
    AttributeDefinition, AttributeValue, BillingMode, DeleteRequest, KeySchemaElement, KeyType,
    KeysAndAttributes, Put, PutRequest, ReturnValuesOnConditionCheckFailure, ScalarAttributeType,
    TableStatus, TransactWriteItem, WriteRequest,
};

use crate::Outcome;
use crate::bench::refusal;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// How often a new table is looked at until it is active, and how long each time is waited.
const LOOKS: u32 = 120;
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// One case's place to work: a client, without retries, and a table of its own with a partition and a sort key.
#[derive(Clone)]
pub struct Bench {
    /// A client of the service under test.
    pub client: Client,
    /// The name of the table.
    pub table: String,
}

/// Calls `$run!` with the name of every case, once.
#[macro_export]
macro_rules! for_each_dynamodb_case {
    ($run:ident) => {
        $run! {
            a_failed_condition_shows_the_old_item_to_those_who_ask,
            racing_writers_never_pass_a_conditional_limit,
            a_cancelled_transaction_gives_a_reason_for_each_action,
            a_callers_own_token_makes_a_transaction_repeatable,
            pages_go_on_in_the_order_of_sort_keys,
            a_range_has_both_of_its_ends,
            a_batch_puts_deletes_and_gets,
            what_cannot_be_is_refused_by_its_code,
        }
    };
}

fn text(value: &str) -> AttributeValue {
    AttributeValue::S(value.to_owned())
}

fn number(value: i64) -> AttributeValue {
    AttributeValue::N(value.to_string())
}

fn key(pk: &str, sk: &str) -> HashMap<String, AttributeValue> {
    HashMap::from([("pk".to_owned(), text(pk)), ("sk".to_owned(), text(sk))])
}

impl Bench {
    /// Creates the table, and waits until it can be used.
    ///
    /// # Errors
    /// Those of `CreateTable` and `DescribeTable`, or when the table does not become active.
    pub async fn create(client: Client, table: String) -> Result<Self, Failure> {
        let mut create = client.create_table().table_name(&table).billing_mode(BillingMode::PayPerRequest);
        for (name, kind) in [("pk", KeyType::Hash), ("sk", KeyType::Range)] {
            let attribute = AttributeDefinition::builder().attribute_name(name);
            let element = KeySchemaElement::builder().attribute_name(name).key_type(kind);
            create = create
                .attribute_definitions(attribute.attribute_type(ScalarAttributeType::S).build()?)
                .key_schema(element.build()?);
        }
        create.send().await?;
        for _ in 0..LOOKS {
            let described = client.describe_table().table_name(&table).send().await?;
            if described.table().and_then(|table| table.table_status()) == Some(&TableStatus::Active) {
                return Ok(Self { client, table });
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        Err(format!("the table {table} does not become active").into())
    }

    /// Removes the table.
    ///
    /// # Errors
    /// Those of `DeleteTable`.
    pub async fn remove(&self) -> Outcome {
        self.client.delete_table().table_name(&self.table).send().await?;
        Ok(())
    }

    async fn put(&self, pk: &str, sk: &str) -> Outcome {
        let put = self.client.put_item().table_name(&self.table).set_item(Some(key(pk, sk)));
        put.item("size", number(7)).send().await?;
        Ok(())
    }

    /// The sort keys of a partition that are there.
    async fn sort_keys(&self, pk: &str) -> Result<Vec<String>, Failure> {
        let query = self.client.query().table_name(&self.table).consistent_read(true);
        let query = query.key_condition_expression("pk = :pk").expression_attribute_values(":pk", text(pk));
        Ok(names(query.send().await?.items()))
    }

    fn new_item(&self, pk: &str, sk: &str) -> Result<TransactWriteItem, Failure> {
        let put = Put::builder().table_name(&self.table).set_item(Some(key(pk, sk)));
        let put = put.condition_expression("attribute_not_exists(pk)").build()?;
        Ok(TransactWriteItem::builder().put(put).build())
    }
}

fn names(items: &[HashMap<String, AttributeValue>]) -> Vec<String> {
    let name = |item: &HashMap<String, AttributeValue>| Some(item.get("sk")?.as_s().ok()?.clone());
    items.iter().filter_map(name).collect()
}

/// # Errors
/// When a call fails that should not.
pub async fn a_failed_condition_shows_the_old_item_to_those_who_ask(bench: &Bench) -> Outcome {
    bench.put("a", "b").await?;
    let again = || {
        let put = bench.client.put_item().table_name(&bench.table).set_item(Some(key("a", "b")));
        put.condition_expression("attribute_not_exists(pk)")
    };
    let shown = again().return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
    for (put, expected) in [(shown, Some(number(7))), (again(), None)] {
        let Err(error) = put.send().await else { return Err("the condition held".into()) };
        let PutItemError::ConditionalCheckFailedException(failed) = error.into_service_error() else {
            return Err("another error than that of a condition".into());
        };
        assert_eq!(failed.item.and_then(|mut item| item.remove("size")), expected);
    }
    Ok(())
}

/// # Errors
/// When a call fails that should not.
pub async fn racing_writers_never_pass_a_conditional_limit(bench: &Bench) -> Outcome {
    const LIMIT: i64 = 20;
    let take = |bench: Bench| async move {
        let take = bench.client.update_item().table_name(&bench.table).set_key(Some(key("bucket", "-")));
        let take = take.update_expression("ADD taken :one");
        let take = take.condition_expression("attribute_not_exists(taken) OR taken < :limit");
        let take = take.expression_attribute_values(":one", number(1));
        match take.expression_attribute_values(":limit", number(LIMIT)).send().await {
            Ok(_) => Ok(1),
            Err(error) => match error.into_service_error() {
                lost if lost.is_conditional_check_failed_exception() => Ok(0),
                other => Err(other),
            },
        }
    };
    let writers: Vec<_> = (0..40).map(|_| tokio::spawn(take(bench.clone()))).collect();
    let mut won = 0;
    for writer in writers {
        won += writer.await??;
    }
    assert_eq!(won, LIMIT);
    Ok(())
}

/// # Errors
/// When a call fails that should not.
pub async fn a_cancelled_transaction_gives_a_reason_for_each_action(bench: &Bench) -> Outcome {
    bench.put("a", "taken").await?;
    let write = bench.client.transact_write_items();
    let write = write.transact_items(bench.new_item("a", "free")?);
    let Err(cancelled) = write.transact_items(bench.new_item("a", "taken")?).send().await else {
        return Err("the transaction succeeded".into());
    };
    let TransactWriteItemsError::TransactionCanceledException(why) = cancelled.into_service_error() else {
        return Err("another error than that of a cancelled transaction".into());
    };
    let codes: Vec<_> = why.cancellation_reasons().iter().filter_map(|reason| reason.code()).collect();
    assert_eq!(codes, ["None", "ConditionalCheckFailed"]);
    assert_eq!(bench.sort_keys("a").await?, ["taken"], "nothing of a cancelled transaction is written");
    Ok(())
}

/// # Errors
/// When a call fails that should not.
pub async fn a_callers_own_token_makes_a_transaction_repeatable(bench: &Bench) -> Outcome {
    let write = |token: &str| {
        let item = bench.new_item("a", "b");
        let write = bench.client.transact_write_items().client_request_token(token);
        item.map(|item| write.transact_items(item).send())
    };
    write("mine")?.await?;
    write("mine")?.await?;
    let Err(other) = write("another")?.await else { return Err("another transaction succeeded".into()) };
    assert!(other.into_service_error().is_transaction_canceled_exception());
    Ok(())
}

/// # Errors
/// When a call fails that should not.
pub async fn pages_go_on_in_the_order_of_sort_keys(bench: &Bench) -> Outcome {
    for sk in ["c", "a", "e", "b", "d"] {
        bench.put("p", sk).await?;
    }
    bench.put("q", "a").await?;
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let query = bench.client.query().table_name(&bench.table).limit(2).consistent_read(true);
        let query = query.key_condition_expression("pk = :pk");
        let query = query.expression_attribute_values(":pk", text("p")).set_exclusive_start_key(after);
        let page = query.send().await?;
        assert!(page.items().len() <= 2, "a page is over its limit");
        found.extend(names(page.items()));
        after = page.last_evaluated_key;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(found, ["a", "b", "c", "d", "e"]);
    Ok(())
}

/// # Errors
/// When a call fails that should not.
pub async fn a_range_has_both_of_its_ends(bench: &Bench) -> Outcome {
    for sk in ["a", "b", "b|1", "c", "d"] {
        bench.put("p", sk).await?;
    }
    let between = "pk = :pk AND sk BETWEEN :from AND :to";
    let query = |condition: &str| {
        let query = bench.client.query().table_name(&bench.table).consistent_read(true);
        query.key_condition_expression(condition).expression_attribute_values(":pk", text("p"))
    };
    let range = query(between).expression_attribute_values(":from", text("b"));
    let range = range.expression_attribute_values(":to", text("c")).send().await?;
    assert_eq!(names(range.items()), ["b", "b|1", "c"]);
    let prefix = query("pk = :pk AND begins_with(sk, :start)");
    let prefix = prefix.expression_attribute_values(":start", text("b|")).send().await?;
    assert_eq!(names(prefix.items()), ["b|1"]);
    Ok(())
}

/// # Errors
/// When a call fails that should not.
pub async fn a_batch_puts_deletes_and_gets(bench: &Bench) -> Outcome {
    bench.put("p", "old").await?;
    let delete = DeleteRequest::builder().set_key(Some(key("p", "old"))).build()?;
    let put = PutRequest::builder().set_item(Some(key("p", "new"))).build()?;
    let writes = vec![
        WriteRequest::builder().delete_request(delete).build(),
        WriteRequest::builder().put_request(put).build(),
    ];
    let written = bench.client.batch_write_item().request_items(&bench.table, writes).send().await?;
    assert!(written.unprocessed_items().is_none_or(HashMap::is_empty));
    let keys = KeysAndAttributes::builder().keys(key("p", "new")).keys(key("p", "old")).consistent_read(true);
    let got = bench.client.batch_get_item().request_items(&bench.table, keys.build()?).send().await?;
    let got = got.responses().and_then(|tables| tables.get(&bench.table)).map(|items| names(items));
    assert_eq!(got, Some(vec!["new".to_owned()]));
    Ok(())
}

/// # Errors
/// When a call fails that should not.
pub async fn what_cannot_be_is_refused_by_its_code(bench: &Bench) -> Outcome {
    let missing = format!("{}-missing", bench.table);
    let missing = bench.client.put_item().table_name(missing).set_item(Some(key("a", "b"))).send().await;
    assert_eq!(refusal(missing)?, "ResourceNotFoundException");
    let no_key = bench.client.put_item().table_name(&bench.table).item("other", text("a")).send().await;
    assert_eq!(refusal(no_key)?, "ValidationException");
    Ok(())
}
