//! Messages of one call that share a row, so that what becomes of all of them changes one row and not ten.
//!
//! They have the numbers from that of their row on, and the turns from its rank on. They are received together, so each was received as
//! often as the others. Whoever touches some of them [splits](split) the row first.

use std::borrow::Cow;
use std::iter;

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::receipt::Receipt;
use super::schema::unreadable;

/// The bytes of a message id.
const ID_BYTES: usize = 16;

/// The columns of [`Texts`].
pub(super) const COLUMNS: &str = "message_id, attributes, body, cuts";

/// The texts of the messages in one row: those of the second behind those of the first. `cuts` says how long the body and the
/// attributes of each are, in bytes; a message that is alone needs none.
pub(super) struct Texts<'a> {
    pub(super) message_ids: Cow<'a, [u8]>,
    pub(super) attributes: Option<Cow<'a, str>>,
    pub(super) body: Cow<'a, str>,
    cuts: Vec<(usize, usize)>,
}

/// The texts of one message.
pub(super) struct Member<'a> {
    pub(super) message_id: &'a [u8],
    pub(super) attributes: Option<&'a str>,
    pub(super) body: &'a str,
}

impl<'a> Texts<'a> {
    /// Those of a message that is alone.
    pub(super) fn of_one(id: &'a [u8; ID_BYTES], attributes: Option<String>, body: &'a str) -> Self {
        let message_ids = Cow::Borrowed(&id[..]);
        Self { message_ids, attributes: attributes.map(Cow::Owned), body: body.into(), cuts: Vec::new() }
    }

    /// Adds a message to others.
    pub(super) fn add(&mut self, id: &[u8; ID_BYTES], attributes: Option<&str>, body: &str) {
        if self.cuts.is_empty() {
            self.cuts.push((self.body.len(), self.attributes.as_ref().map_or(0, |joined| joined.len())));
        }
        self.cuts.push((body.len(), attributes.map_or(0, str::len)));
        self.message_ids.to_mut().extend(id);
        self.body.to_mut().push_str(body);
        if let Some(attributes) = attributes {
            self.attributes.get_or_insert_default().to_mut().push_str(attributes);
        }
    }

    /// How many messages there are.
    pub(super) fn count(&self) -> usize {
        self.cuts.len().max(1)
    }

    /// The column that tells them apart.
    pub(super) fn cuts(&self) -> Option<String> {
        (!self.cuts.is_empty()).then(|| serde_json::to_string(&self.cuts).unwrap_or_default())
    }

    /// Reads [`COLUMNS`] from the column `at` on.
    ///
    /// # Errors
    /// For columns that do not go together.
    pub(super) fn read(row: &Row<'_>, at: usize) -> rusqlite::Result<Texts<'static>> {
        let cuts: Option<String> = row.get(at + 3)?;
        let texts = Texts {
            message_ids: Cow::Owned(row.get(at)?),
            attributes: row.get::<_, Option<String>>(at + 1)?.map(Cow::Owned),
            body: Cow::Owned(row.get(at + 2)?),
            cuts: cuts
                .map_or(Ok(Vec::new()), |cuts| serde_json::from_str(&cuts))
                .map_err(|_| unreadable(at + 3))?,
        };
        if texts.each().count() != texts.count() {
            return Err(unreadable(at + 3));
        }
        Ok(texts)
    }

    /// Each message, in their order.
    pub(super) fn each(&self) -> impl Iterator<Item = Member<'_>> {
        let attributes = self.attributes.as_deref().unwrap_or_default();
        let alone = (self.cuts.is_empty()).then_some((self.body.len(), attributes.len()));
        let mut rest = (&*self.message_ids, attributes, &*self.body);
        self.cuts.iter().copied().chain(alone).map_while(move |(body_bytes, attribute_bytes)| {
            let (message_id, ids) = rest.0.split_at_checked(ID_BYTES)?;
            let (attributes, all_attributes) = rest.1.split_at_checked(attribute_bytes)?;
            let (body, bodies) = rest.2.split_at_checked(body_bytes)?;
            rest = (ids, all_attributes, bodies);
            let attributes = (!attributes.is_empty()).then_some(attributes);
            Some(Member { message_id, attributes, body })
        })
    }
}

/// A row, as far as it matters to what may be done with its messages.
pub(super) struct Standing {
    pub(super) seq: i64,
    pub(super) count: i64,
    pub(super) state: i64,
    pub(super) visible_at_ms: i64,
    pub(super) receive_count: i64,
    pub(super) received_at_ms: i64,
    pub(super) group_id: Option<String>,
}

impl Standing {
    /// The row that has the message of a receipt.
    pub(super) fn of(conn: &Connection, receipt: Receipt) -> rusqlite::Result<Option<Self>> {
        let found = conn
            .prepare_cached(
                "SELECT queue_id, seq, count, state, visible_at_ms, receive_count, received_at_ms, group_id FROM messages
                 WHERE seq <= ?1 ORDER BY seq DESC LIMIT 1",
            )?
            .query_row([receipt.seq], |row| {
                let standing = Self {
                    seq: row.get(1)?,
                    count: row.get(2)?,
                    state: row.get(3)?,
                    visible_at_ms: row.get(4)?,
                    receive_count: row.get(5)?,
                    received_at_ms: row.get(6)?,
                    group_id: row.get(7)?,
                };
                Ok((row.get::<_, i64>(0)?, standing))
            })
            .optional()?;
        Ok(found
            .and_then(|(queue_id, row)| (queue_id == receipt.queue_id && row.has(receipt)).then_some(row)))
    }

    /// Whether the message of a receipt lies in it.
    pub(super) fn has(&self, receipt: Receipt) -> bool {
        (self.seq..self.seq + self.count).contains(&receipt.seq)
    }
}

/// Gives each message of a row one of its own.
pub(super) fn split(conn: &Connection, seq: i64) -> rusqlite::Result<()> {
    let texts = conn
        .prepare_cached(&format!("SELECT {COLUMNS} FROM messages WHERE seq = ?1"))?
        .query_row([seq], |row| Texts::read(row, 0))?;
    let mut alone = conn.prepare_cached(
        "INSERT INTO messages (seq, queue_id, state, rank, visible_at_ms, receive_count, received_at_ms, first_received_at_ms,
            sent_at_ms, message_id, group_id, source_arn, attributes, body)
         SELECT seq + ?2, queue_id, state, rank + ?2, visible_at_ms, receive_count, received_at_ms, first_received_at_ms,
            sent_at_ms, ?3, group_id, source_arn, ?4, ?5 FROM messages WHERE seq = ?1",
    )?;
    for (place, Member { message_id, attributes, body }) in iter::zip(0_i64.., texts.each()) {
        if place > 0 {
            alone.execute(params![seq, place, message_id, attributes, body])?;
        }
    }
    let Some(Member { message_id, attributes, body }) = texts.each().next() else { return Ok(()) };
    conn.prepare_cached(
        "UPDATE messages SET count = 1, cuts = NULL, message_id = ?2, attributes = ?3, body = ?4 WHERE seq = ?1",
    )?
    .execute(params![seq, message_id, attributes, body])?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Id, attributes and body of each.
    fn read(texts: &Texts<'_>) -> Vec<(u8, Option<String>, String)> {
        let told = |m: Member<'_>| (m.message_id[0], m.attributes.map(str::to_owned), m.body.to_owned());
        texts.each().map(told).collect()
    }

    #[test]
    fn texts_that_are_joined_come_apart_again() {
        let mut texts = Texts::of_one(&[1; 16], None, "één");
        assert_eq!((texts.count(), texts.cuts()), (1, None));
        assert_eq!(read(&texts), [(1, None, "één".to_owned())]);
        texts.add(&[2; 16], Some("{}"), "b");
        texts.add(&[3; 16], None, "ccc");
        assert_eq!(texts.count(), 3);
        let told = [(1, None, "één"), (2, Some("{}"), "b"), (3, None, "ccc")];
        assert_eq!(read(&texts), told.map(|(id, a, b)| (id, a.map(str::to_owned), b.to_owned())));
        assert_eq!(texts.cuts().as_deref(), Some("[[5,0],[1,2],[3,0]]"));
    }

    #[test]
    fn columns_that_do_not_go_together_are_an_error_and_no_panic() {
        let conn = Connection::open_in_memory().unwrap();
        let read = |ids: usize, body: &str, cuts: Option<&str>| {
            let columns = params![vec![7_u8; ids], None::<String>, body, cuts];
            conn.query_row("SELECT ?1, ?2, ?3, ?4", columns, |row| Texts::read(row, 0))
                .map(|texts| texts.count())
        };
        assert_eq!(read(32, "éa", Some("[[2,0],[1,0]]")), Ok(2));
        for (ids, body, cuts) in [
            (16, "éa", Some("[[2,0],[1,0]]")),
            (32, "éa", Some("[[1,0],[2,0]]")),
            (32, "éa", Some("[[2,0],[2,0]]")),
            (32, "éa", Some("[[2,3],[1,0]]")),
            (32, "éa", Some("odd")),
            (8, "éa", None),
        ] {
            assert!(read(ids, body, cuts).is_err(), "{ids} {body} {cuts:?}");
        }
    }
}
