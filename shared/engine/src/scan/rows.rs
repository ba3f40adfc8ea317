//! The rows of a shard, page by page, from a cursor that can be kept.

use std::vec;

use futures::stream::{self, Stream, StreamExt};
use tidegate_store::launch::{IndexRow, Shard};
use tidegate_store::scans::Cursor;
use tidegate_store::{Page, Store};

use super::{RowEnd, Scan, Sink};
use crate::EngineError;

/// Shards read at once.
const READS_AT_ONCE: usize = 16;

/// The rows of a shard from a cursor on, page by page.
pub(crate) struct Rows<'e> {
    store: &'e Store,
    partition: String,
    range: Option<(String, String)>,
    pub(crate) cursor: Cursor,
    page: vec::IntoIter<IndexRow>,
    next: Next,
}

/// Where the next page begins.
enum Next {
    After(Option<String>),
    None,
}

impl<'e> Rows<'e> {
    pub(crate) fn new(
        store: &'e Store,
        partition: String,
        range: Option<(String, String)>,
        cursor: Cursor,
    ) -> Self {
        let next = Next::After(cursor.after.clone());
        Self { store, partition, range, cursor, page: Vec::new().into_iter(), next }
    }

    fn turn_to(&mut self, page: Page<IndexRow>) {
        self.page = page.rows.into_iter();
        self.next = page.next.map_or(Next::None, |after| Next::After(Some(after)));
    }

    pub(crate) async fn next_row(&mut self) -> Result<Option<IndexRow>, EngineError> {
        loop {
            if let Some(row) = self.page.next() {
                return Ok(Some(row));
            }
            let Next::After(after) = std::mem::replace(&mut self.next, Next::None) else { return Ok(None) };
            let (partition, range) = (self.partition.clone(), self.range.clone());
            let page = self.store.children_between(partition, range, after).await?;
            self.turn_to(page);
        }
    }

    fn is_at_its_end(&self) -> bool {
        self.page.as_slice().is_empty() && matches!(self.next, Next::None)
    }

    /// Hands rows to a sink until it is full. Whether none is left.
    pub(crate) async fn feed(
        &mut self,
        scan: &mut Scan<'_>,
        sink: &mut impl Sink,
    ) -> Result<bool, EngineError> {
        sink.enter(&self.partition);
        while let Some(row) = self.next_row().await? {
            let sort_key = row.sort_key.clone();
            let within = self.cursor.within.take().filter(|(row, _)| *row == sort_key);
            match scan.row(row, within.map(|(_, to)| to), sink).await? {
                RowEnd::Done => self.cursor.after = Some(sort_key),
                RowEnd::Cut(to) => {
                    self.cursor.within = Some((sort_key, to));
                    // The row comes again, for its other launches.
                    self.page = Vec::new().into_iter();
                    self.next = Next::After(self.cursor.after.clone());
                    return Ok(false);
                }
            }
            if sink.is_full() {
                return Ok(self.is_at_its_end());
            }
        }
        Ok(true)
    }
}

/// The rows of each shard, in the order of the shards, of many of which the first page is read ahead.
pub(crate) fn rows_of<'e>(
    store: &'e Store,
    shards: &'e [Shard],
) -> impl Stream<Item = Result<Rows<'e>, EngineError>> + Unpin {
    let reads: Vec<_> = shards.iter().map(|shard| first_rows(store, shard)).collect();
    stream::iter(reads).buffered(READS_AT_ONCE)
}

async fn first_rows<'e>(store: &'e Store, shard: &Shard) -> Result<Rows<'e>, EngineError> {
    let mut rows = Rows::new(store, shard.partition(), shard.range(), Cursor::default());
    rows.turn_to(store.children(shard, None).await?);
    Ok(rows)
}
