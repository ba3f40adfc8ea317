//! One request: from the JSON body to the library's typed operation and back.

use dynoxide::actions::transact_write_items::TransactWriteItemsRequest;
use dynoxide::actions::{batch_write_item, delete_item, put_item, transact_write_items, update_item};
use dynoxide::storage::Storage;
use dynoxide::{Database, DynoxideError};
use futures::FutureExt as _;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::capacity::{self, Asked, MeteredRequest, MeteredResponse, Reported};
use super::direct::{Reader, RowWrites, Served, Update};
use super::refusal;
use super::{InFile, SDK_TOKEN};
use crate::meter::Meter;
use crate::reply::Reply;

/// Serves `operation` and counts what it consumed. Never waits when there is no `file`.
pub(super) async fn serve(
    (db, file): (&Database, Option<&InFile>),
    operation: &str,
    body: &[u8],
    token: Option<String>,
    meter: &Meter,
) -> Reply {
    let metered = Metered { operation, body, meter, db, file };
    let answer = match operation {
        "PutItem" => {
            let put = |on: &Storage, request| at_once(put_item::execute(on, request));
            metered.rows((RowWrites::of_put, "{}"), (Database::put_item, put)).await
        }
        "GetItem" => metered.read(Reader::get_item, |request| db.get_item(request)),
        "UpdateItem" => metered.update().await,
        "DeleteItem" => {
            metered
                .write(Database::delete_item, |on, request| at_once(delete_item::execute(on, request)))
                .await
        }
        "Query" => metered.run(|request| db.query(request)),
        "Scan" => metered.run(|request| db.scan(request)),
        "BatchGetItem" => metered.read(Reader::batch_get_item, |request| db.batch_get_item(request)),
        "BatchWriteItem" => {
            let write = |on: &Storage, request| at_once(batch_write_item::execute(on, request));
            let answer = r#"{"UnprocessedItems":{}}"#;
            metered.rows((RowWrites::of_batch, answer), (Database::batch_write_item, write)).await
        }
        "TransactGetItems" => metered.run(|request| db.transact_get_items(request)),
        "TransactWriteItems" => metered.transaction(token).await,
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
    db: &'a Database,
    file: Option<&'a InFile>,
}

impl Metered<'_> {
    /// A request that reads.
    fn run<Q, R>(self, execute: impl FnOnce(Q) -> dynoxide::Result<R>) -> dynoxide::Result<Vec<u8>>
    where
        Q: MeteredRequest + DeserializeOwned,
        R: MeteredResponse + Serialize,
    {
        let (request, asked) = self.ask()?;
        self.report(asked, execute(request))
    }

    /// A request that reads rows by their keys: `direct` where the tables are in a file and that has an answer.
    fn read<Q, R>(
        self,
        direct: impl FnOnce(&Reader, &Q) -> Option<Served>,
        execute: impl FnOnce(Q) -> dynoxide::Result<R>,
    ) -> dynoxide::Result<Vec<u8>>
    where
        Q: MeteredRequest + DeserializeOwned,
        R: MeteredResponse + Serialize,
    {
        let (request, asked) = self.ask()?;
        let reader = self.file.map(|file| &file.reader).filter(|_| asked.capacity == Reported::Nothing);
        match reader.and_then(|reader| direct(reader, &request)) {
            Some(served) => Ok(count(self.meter, self.operation, served)),
            None => self.report(asked, execute(request)),
        }
    }

    /// An update of a row: past the library where the table is in a file and the update is plain.
    async fn update(self) -> dynoxide::Result<Vec<u8>> {
        let mut unknown = None;
        if let Some(file) = self.file
            && let Some(update) = Update::of(&file.reader, self.body)
        {
            let answer = |row: Option<&str>| match row {
                Some(json) => Some(format!(r#"{{"Attributes":{json}}}"#).into_bytes()),
                None => Some(b"{}".to_vec()),
            };
            match file.writer.run(move |on| update.make(on, answer)).await? {
                Ok(served) => return Ok(count(self.meter, self.operation, served)),
                Err(names) => unknown = Some((&file.reader, names)),
            }
        }
        let library = |on: &Storage, request| at_once(update_item::execute(on, request));
        let updated = self.write(Database::update_item, library).await?;
        if let Some((reader, names)) = unknown {
            reader.learn_names(names);
        }
        Ok(updated)
    }

    /// A request that writes rows whole: past the library where the tables are in a file and `direct` can read it.
    async fn rows<Q, R>(
        self,
        (direct, answer): (impl FnOnce(&Reader, &[u8]) -> Option<RowWrites>, &str),
        (in_memory, storage): (
            impl FnOnce(&Database, Q) -> dynoxide::Result<R>,
            impl FnOnce(&Storage, Q) -> dynoxide::Result<R> + Send + 'static,
        ),
    ) -> dynoxide::Result<Vec<u8>>
    where
        Q: MeteredRequest + DeserializeOwned + Send + 'static,
        R: MeteredResponse + Serialize + Send + 'static,
    {
        if let Some(file) = self.file
            && let Some(rows) = direct(&file.reader, self.body)
            && let Some(served) = file.writer.run(move |on| rows.make(on)).await?
        {
            count(self.meter, self.operation, served);
            return Ok(answer.as_bytes().to_vec());
        }
        self.write(in_memory, storage).await
    }

    /// A request that writes: `in_memory` without a file, otherwise on `storage`.
    async fn write<Q, R>(
        self,
        in_memory: impl FnOnce(&Database, Q) -> dynoxide::Result<R>,
        storage: impl FnOnce(&Storage, Q) -> dynoxide::Result<R> + Send + 'static,
    ) -> dynoxide::Result<Vec<u8>>
    where
        Q: MeteredRequest + DeserializeOwned + Send + 'static,
        R: MeteredResponse + Serialize + Send + 'static,
    {
        let (request, asked) = self.ask()?;
        let written = match self.file {
            Some(file) => file.writer.run(move |on| storage(on, request)).await,
            None => in_memory(self.db, request),
        };
        self.report(asked, written)
    }

    /// A transaction that writes. The library remembers the tokens of those that it makes itself.
    async fn transaction(self, token: Option<String>) -> dynoxide::Result<Vec<u8>> {
        let (mut request, asked): (TransactWriteItemsRequest, _) = self.ask()?;
        if request.client_request_token.as_deref() == Some(SDK_TOKEN) {
            request.client_request_token = token;
        }
        let written = match self.file {
            Some(file) if request.client_request_token.is_none() => {
                file.writer.run(|on| at_once(transact_write_items::execute(on, request))).await
            }
            _ => self.db.transact_write_items(request),
        };
        self.report(asked, written)
    }

    /// The request, which always asks for the capacity that it consumes, and what its caller asked for.
    fn ask<Q: MeteredRequest + DeserializeOwned>(&self) -> dynoxide::Result<(Q, Asked)> {
        let mut request: Q = refusal::parse(self.operation, self.body)?;
        let asked = capacity::ask(&mut request);
        Ok((request, asked))
    }

    /// Reports what was consumed to the meter, and to the caller as it wished.
    fn report<R: MeteredResponse + Serialize>(
        &self,
        asked: Asked,
        answer: dynoxide::Result<R>,
    ) -> dynoxide::Result<Vec<u8>> {
        match answer {
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

/// Counts what was served past the library; returns the answer.
pub(super) fn count<A>(meter: &Meter, operation: &str, Served { answer, units }: Served<A>) -> A {
    meter.dynamodb(operation, units.into_iter().map(|(table, units)| (table.into(), units)));
    answer
}

fn serialize(response: &impl Serialize) -> dynoxide::Result<Vec<u8>> {
    serde_json::to_vec(response).map_err(|error| DynoxideError::InternalServerError(error.to_string()))
}

/// What the library's futures give, which wait for nothing on SQLite.
fn at_once<R>(serving: impl Future<Output = dynoxide::Result<R>>) -> dynoxide::Result<R> {
    let suspended = || Err(DynoxideError::InternalServerError("the library waits for something".to_owned()));
    serving.now_or_never().unwrap_or_else(suspended)
}
