//! One request: from the JSON body to the library's typed operation and back.

use dynoxide::actions::transact_write_items::TransactWriteItemsRequest;
use dynoxide::{Database, DynoxideError};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::SDK_TOKEN;
use super::capacity::{self, MeteredRequest, MeteredResponse};
use super::refusal;
use crate::meter::Meter;
use crate::reply::Reply;

/// Serves `operation` and counts what it consumed.
pub(super) fn serve(
    db: &Database,
    operation: &str,
    body: &[u8],
    token: Option<String>,
    meter: &Meter,
) -> Reply {
    let metered = Metered { operation, body, meter };
    let answer = match operation {
        "PutItem" => metered.run(|request| db.put_item(request)),
        "GetItem" => metered.run(|request| db.get_item(request)),
        "UpdateItem" => metered.run(|request| db.update_item(request)),
        "DeleteItem" => metered.run(|request| db.delete_item(request)),
        "Query" => metered.run(|request| db.query(request)),
        "Scan" => metered.run(|request| db.scan(request)),
        "BatchGetItem" => metered.run(|request| db.batch_get_item(request)),
        "BatchWriteItem" => metered.run(|request| db.batch_write_item(request)),
        "TransactGetItems" => metered.run(|request| db.transact_get_items(request)),
        "TransactWriteItems" => metered.run(|mut request: TransactWriteItemsRequest| {
            if request.client_request_token.as_deref() == Some(SDK_TOKEN) {
                request.client_request_token = token;
            }
            db.transact_write_items(request)
        }),
        "CreateTable" => metered.plain(|request| db.create_table(request)),
        "DeleteTable" => metered.plain(|request| db.delete_table(request)),
        "DescribeTable" => metered.plain(|request| db.describe_table(request)),
        "UpdateTable" => metered.plain(|request| db.update_table(request)),
        "ListTables" => metered.plain(|request| db.list_tables(request)),
        "UpdateTimeToLive" => metered.plain(|request| db.update_time_to_live(request)),
        "DescribeTimeToLive" => metered.plain(|request| db.describe_time_to_live(request)),
        _ => return refusal::unknown_operation(operation),
    };
    match answer {
        Ok(body) => Reply::ok(body),
        Err(error) => refusal::reply(&error),
    }
}

/// One request on its way, with what is needed to count it.
struct Metered<'a> {
    operation: &'a str,
    body: &'a [u8],
    meter: &'a Meter,
}

impl Metered<'_> {
    /// A request that consumes capacity: always asked for, reported to the meter, given to the caller as it wished.
    fn run<Q, R>(self, execute: impl FnOnce(Q) -> dynoxide::Result<R>) -> dynoxide::Result<Vec<u8>>
    where
        Q: MeteredRequest + DeserializeOwned,
        R: MeteredResponse + Serialize,
    {
        let mut request: Q = refusal::parse(self.operation, self.body)?;
        let asked = capacity::ask(&mut request);
        match execute(request) {
            Ok(mut response) => {
                self.meter.dynamodb(self.operation, capacity::units(self.operation, response.consumed()));
                response.report(asked.capacity);
                serialize(&response)
            }
            Err(error) => {
                self.meter.dynamodb(self.operation, asked.units_of_failure(&error));
                Err(asked.as_the_caller_wished(error))
            }
        }
    }

    /// A request about tables: costs no units.
    fn plain<Q, R>(self, execute: impl FnOnce(Q) -> dynoxide::Result<R>) -> dynoxide::Result<Vec<u8>>
    where
        Q: DeserializeOwned,
        R: Serialize,
    {
        self.meter.dynamodb(self.operation, []);
        serialize(&execute(refusal::parse(self.operation, self.body)?)?)
    }
}

fn serialize(response: &impl Serialize) -> dynoxide::Result<Vec<u8>> {
    serde_json::to_vec(response).map_err(|error| DynoxideError::InternalServerError(error.to_string()))
}
