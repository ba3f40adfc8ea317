//! A table without indexes and streams, and the statements on it.

use dynoxide::storage::{Storage, compute_hash_prefix};
use dynoxide::types::{AttributeDefinition, AttributeValue, KeySchemaElement, KeyType, ScalarAttributeType};
use rusqlite::{OptionalExtension as _, params};

/// The longest keys that DynamoDB takes, in bytes.
const PARTITION_KEY_BYTES: usize = 2048;
const SORT_KEY_BYTES: usize = 1024;

/// A table without indexes and streams, whose keys are strings.
pub(super) struct Plain {
    pub(super) partition_key: String,
    pub(super) sort_key: Option<String>,
    statements: Statements,
}

/// What is asked of a table, by the place of a row.
struct Statements {
    row: String,
    size: String,
    insert: String,
    rewrite: String,
    delete: String,
}

/// The columns of a key.
pub(super) type Place = (String, String);

impl Plain {
    /// The table with this name, if there is one and it is plain.
    pub(super) fn of(storage: &Storage, name: &str) -> Option<Self> {
        let table = storage.get_table_metadata(name).ok()??;
        let has_more = |definitions: &Option<String>| {
            definitions.as_deref().is_some_and(|json| !matches!(json, "" | "null" | "[]"))
        };
        let has_more = has_more(&table.gsi_definitions)
            || has_more(&table.lsi_definitions)
            || has_more(&table.vector_index_definitions);
        if has_more || table.stream_enabled {
            return None;
        }
        let keys: Vec<KeySchemaElement> = serde_json::from_str(&table.key_schema).ok()?;
        let attributes: Vec<AttributeDefinition> = serde_json::from_str(&table.attribute_definitions).ok()?;
        let is_text = |name: &str| {
            let of_text = |attribute: &AttributeDefinition| {
                attribute.attribute_name == name && attribute.attribute_type == ScalarAttributeType::S
            };
            attributes.iter().any(of_text)
        };
        if !keys.iter().all(|key| is_text(&key.attribute_name)) {
            return None;
        }
        let key = |wanted: KeyType| keys.iter().find(|key| key.key_type == wanted);
        let partition_key = key(KeyType::HASH)?.attribute_name.clone();
        let sort_key = key(KeyType::RANGE).map(|key| key.attribute_name.clone());
        Some(Self { partition_key, sort_key, statements: Statements::on(name) })
    }

    /// The place of the row with a key of so many attributes, when these are the table's keys and no more; `text` tells those
    /// that are texts.
    pub(super) fn place_of_key<'k>(
        &self,
        attributes: usize,
        text: impl Fn(&str) -> Option<&'k str>,
    ) -> Option<Place> {
        let sort_key = self.sort_key.as_deref().and_then(&text);
        (attributes == self.keys()).then(|| self.place(text(&self.partition_key), sort_key))?
    }

    /// How many attributes its keys are.
    pub(super) fn keys(&self) -> usize {
        1 + usize::from(self.sort_key.is_some())
    }

    /// The place of the row with these texts as keys, when they are what the table's keys may be.
    pub(super) fn place(&self, partition_key: Option<&str>, sort_key: Option<&str>) -> Option<Place> {
        let column = |text: Option<&str>, most: usize| {
            let text = text.filter(|text| (1..=most).contains(&text.len()))?;
            Some(format!("S:{text}"))
        };
        let sort_key = match &self.sort_key {
            Some(_) => column(sort_key, SORT_KEY_BYTES)?,
            None => String::new(),
        };
        Some((column(partition_key, PARTITION_KEY_BYTES)?, sort_key))
    }

    /// The JSON of the row at a place and its size, if there is one; nothing at all when the library is to read it.
    pub(super) fn row(&self, storage: &Storage, (pk, sk): &Place) -> Option<Option<(String, usize)>> {
        let mut statement = storage.conn().prepare_cached(&self.statements.row).ok()?;
        let row = statement
            .query_row(params![pk, sk], |row| Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?)))
            .optional();
        match row.ok()? {
            // The library puts the numbers of a set in order when it answers.
            Some((json, _)) if json.contains(r#""NS":"#) => None,
            Some((json, size)) => Some(Some((json, usize::try_from(size).ok()?))),
            None => Some(None),
        }
    }

    /// Puts a row where none is; returns whether none was.
    pub(super) fn insert(
        &self,
        storage: &Storage,
        (pk, sk): &Place,
        (json, size): (&str, usize),
    ) -> dynoxide::Result<bool> {
        let mut statement = storage.conn().prepare_cached(&self.statements.insert)?;
        Ok(statement.execute(params![pk, sk, json, size as i64, hash_prefix(pk)])? == 1)
    }

    /// Puts a row, whatever is there; returns the size of the one before.
    pub(super) fn put(
        &self,
        storage: &Storage,
        place: &Place,
        row: (&str, usize),
    ) -> dynoxide::Result<Option<usize>> {
        // Most rows that are put are new.
        if self.insert(storage, place, row)? {
            return Ok(None);
        }
        let old = self.size(storage, place)?;
        self.rewrite(storage, place, row)?;
        Ok(old)
    }

    /// Puts another row in the place of one that is there, with the same keys.
    pub(super) fn rewrite(
        &self,
        storage: &Storage,
        (pk, sk): &Place,
        (json, size): (&str, usize),
    ) -> dynoxide::Result<()> {
        let mut statement = storage.conn().prepare_cached(&self.statements.rewrite)?;
        statement.execute(params![pk, sk, json, size as i64])?;
        Ok(())
    }

    /// Deletes a row; returns its size.
    pub(super) fn delete(&self, storage: &Storage, place: &Place) -> dynoxide::Result<Option<usize>> {
        let old = self.size(storage, place)?;
        let (pk, sk) = place;
        storage.conn().prepare_cached(&self.statements.delete)?.execute(params![pk, sk])?;
        Ok(old)
    }

    fn size(&self, storage: &Storage, (pk, sk): &Place) -> dynoxide::Result<Option<usize>> {
        let mut statement = storage.conn().prepare_cached(&self.statements.size)?;
        let size = statement.query_row(params![pk, sk], |row| row.get::<_, i64>(0)).optional()?;
        Ok(size.and_then(|size| usize::try_from(size).ok()))
    }
}

impl Statements {
    fn on(table: &str) -> Self {
        let table = format!("\"{}\"", table.replace('"', "\"\""));
        let there = "WHERE pk = ?1 AND sk = ?2";
        let row = "(pk, sk, item_json, item_size, hash_prefix) VALUES (?1, ?2, ?3, ?4, ?5)";
        Self {
            row: format!("SELECT item_json, item_size FROM {table} {there}"),
            size: format!("SELECT item_size FROM {table} {there}"),
            insert: format!("INSERT INTO {table} {row} ON CONFLICT (pk, sk) DO NOTHING"),
            rewrite: format!("UPDATE {table} SET item_json = ?3, item_size = ?4 {there}"),
            delete: format!("DELETE FROM {table} {there}"),
        }
    }
}

/// By what scans in segments find a row, from its partition key as the column has it.
fn hash_prefix(pk: &str) -> String {
    let text = pk.strip_prefix("S:").unwrap_or(pk);
    compute_hash_prefix(&AttributeValue::S(text.to_owned()))
}
