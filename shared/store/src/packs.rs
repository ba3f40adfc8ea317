//! Packs of single events: a row holds the occurrences of many, and an entry of the line stands for them.
//!
//! The packs of a policy, minute, priority, lane and cost are numbered, and a number is written once. So they are a log: whoever
//! appends to it knows all that stands before, and no occurrence gets into two of them. Rows stay when their entry has
//! left the line, as long as history does: they say which runs there were.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use tidegate_domain::fair::Rank;
use tidegate_domain::ids::{ClientId, PolicyId, RunId};
use tidegate_domain::limits::{PACK_BYTES, PACK_EVENTS};
use tidegate_domain::occurrence::Occurrence;
use tidegate_domain::pack::{PackId, Singles, SinglesId, SinglesKind, Straight};
use tracing::warn;

use crate::doc::TermsDoc;
use crate::item::{Attributes, Item, Key, Row, number, text};
use crate::line::singles_row;
use crate::rows::{Query, Sorted, Update};
pub use crate::runs::PackMember;
use crate::tables::Table;
use crate::{Create, Result, Store, Write};

/// The highest number that keeps its place in a sort key.
const LAST_NUMBER: u32 = 999_999;
/// The version of what a row says.
const VERSION: u8 = 1;

/// The occurrences of a pack, as its row says them.
#[derive(Serialize, Deserialize)]
struct PackDoc {
    /// The version.
    v: u8,
    /// What the occurrences deliver, each once, without payloads.
    t: Vec<TermsDoc>,
    /// The occurrences.
    e: Vec<MemberDoc>,
}

/// An occurrence: the second of the minute, the job, its revision, the number of its terms, its payload.
#[derive(Serialize, Deserialize)]
struct MemberDoc(i64, String, u32, usize, #[serde(default)] Option<String>);

fn partition(client: &ClientId, minute: i64) -> String {
    format!("{client}|~{minute}")
}

fn prefix(policy: &PolicyId, kind: SinglesKind) -> String {
    let Rank { priority, lane } = kind.rank;
    let lane = lane.map_or_else(String::new, |lane| format!(".{lane}"));
    format!("{policy}|{priority}.{:02}{lane}|", kind.cost)
}

pub(crate) fn key(client: &ClientId, policy: &PolicyId, id: SinglesId) -> Key {
    Key::new(partition(client, id.kind.minute), sort_key(policy, id))
}

fn sort_key(policy: &PolicyId, id: SinglesId) -> String {
    format!("{}{:06}", prefix(policy, id.kind), id.number)
}

/// The packs of a kind from a number on.
fn sorted_from(policy: &PolicyId, kind: SinglesKind, from: u32) -> Sorted {
    Sorted::Between(sort_key(policy, kind.number(from)), sort_key(policy, kind.number(LAST_NUMBER)))
}

/// Terms as a pack keeps them, and the payload that stood in them.
fn terms_of(occurrence: &Occurrence) -> (String, Option<String>, TermsDoc) {
    let mut doc = TermsDoc::from(&occurrence.terms);
    let payload = doc.take_payload();
    (serde_json::to_string(&doc).unwrap_or_default(), payload, doc)
}

/// How many of some occurrences, the first ones, fit into one pack: at most [`PACK_EVENTS`] and about [`PACK_BYTES`],
/// but always one.
pub fn fitting<'o>(members: impl IntoIterator<Item = &'o Occurrence>) -> usize {
    let (mut bytes, mut known, mut fit) = (32_usize, Vec::<String>::new(), 0_usize);
    for member in members.into_iter().take(PACK_EVENTS) {
        let (terms, payload, _) = terms_of(member);
        // A payload is JSON in a JSON string: its quotes are escaped.
        let own = payload.map_or(4, |json| json.len().saturating_add(json.matches('"').count()));
        bytes = bytes.saturating_add(own).saturating_add(member.job.as_str().len()).saturating_add(32);
        if !known.contains(&terms) {
            bytes = bytes.saturating_add(terms.len()).saturating_add(1);
            known.push(terms);
        }
        if bytes > PACK_BYTES && fit > 0 {
            break;
        }
        fit = fit.saturating_add(1);
    }
    fit
}

fn encode(pack: &Singles) -> Result<String> {
    let (mut texts, mut docs, mut members) = (Vec::new(), Vec::new(), Vec::with_capacity(pack.members.len()));
    for member in &pack.members {
        let (terms, payload, doc) = terms_of(member);
        let place = texts.iter().position(|known| *known == terms).unwrap_or_else(|| {
            texts.push(terms);
            docs.push(doc);
            texts.len().saturating_sub(1)
        });
        let second = member.launch_at.timestamp().rem_euclid(60);
        members.push(MemberDoc(second, member.job.to_string(), member.revision, place, payload));
    }
    let doc = PackDoc { v: VERSION, t: docs, e: members };
    serde_json::to_string(&doc).map_err(|e| crate::StoreError::Corrupt {
        table: Table::Runs,
        key: pack.id.to_string(),
        reason: e.to_string(),
    })
}

pub(crate) fn read(client: &ClientId, id: SinglesId, row: &Attributes) -> Result<Singles> {
    let item = Item::read(Table::Runs, row)?;
    let doc: PackDoc = serde_json::from_str(item.text("pack")?).map_err(|e| item.corrupt(e.to_string()))?;
    if doc.v > VERSION {
        return Err(item.corrupt(format!("'pack' is written by a newer version: format {}", doc.v)));
    }
    let mut members = Vec::with_capacity(doc.e.len());
    for MemberDoc(second, job, revision, terms, payload) in doc.e {
        let terms = doc.t.get(terms).ok_or_else(|| item.corrupt("'pack' names terms that it has not"))?;
        let launch_s = id.kind.minute.saturating_mul(60).saturating_add(second);
        members.push(Occurrence {
            client: client.clone(),
            job: job.parse().map_err(|e| item.corrupt(format!("'pack': {e}")))?,
            revision,
            launch_at: DateTime::from_timestamp(launch_s, 0)
                .ok_or_else(|| item.corrupt("'pack': no instant"))?,
            terms: terms
                .clone()
                .with_payload(payload)
                .read()
                .map_err(|e| item.corrupt(format!("'pack': {e}")))?,
        });
    }
    let straight =
        item.find_text("to").map(|to| straight_of(to).ok_or_else(|| item.corrupt("'to' is no group")));
    Ok(Singles { id, as_of: item.find_instant_ms("as_of")?, straight: straight.transpose()?, members })
}

pub(crate) fn straight_text(to: Straight) -> String {
    format!("{}.{}", to.group, to.refills)
}

fn straight_of(text: &str) -> Option<Straight> {
    let (group, refills) = text.split_once('.')?;
    Some(Straight { group: group.parse().ok()?, refills: refills.parse().ok()? })
}

fn pack_row(client: &ClientId, policy: &PolicyId, pack: &Singles, now: DateTime<Utc>) -> Result<Row> {
    Ok(Row::new(&key(client, policy, pack.id))
        .with("id", text(pack.id.to_string()))
        .with("policy", text(policy.as_str()))
        .with_some("as_of", pack.as_of.map(|as_of| number(as_of.timestamp_millis())))
        .with_some("to", pack.straight.map(|to| text(straight_text(to))))
        .with("pack", text(encode(pack)?))
        .expiring(pack.history_days().at_least_default().from(now.max(pack.launch_at()))))
}

/// The policy and the pack that a row is of.
pub(crate) fn name_of(row: &Attributes) -> Result<(PolicyId, SinglesId)> {
    let item = Item::read(Table::Runs, row)?;
    let pack: PackId = item.parsed("id", item.text("id")?)?;
    let PackId::Singles(id) = pack else { return Err(item.corrupt("'id' is no pack of single events")) };
    Ok((item.id("policy")?, id))
}

fn readable<T>(pack: Result<T>) -> Option<T> {
    pack.inspect_err(|error| warn!(%error, "a pack is passed over")).ok()
}

impl Store {
    /// Writes a pack and puts it into its policy's waiting line: both or neither. `Exists` when its number was given
    /// before.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer, or when the transaction still conflicts
    /// with others after `WRITE_ROUNDS` more attempts: nothing is written then.
    pub async fn append_pack(
        &self,
        client: &ClientId,
        policy: &PolicyId,
        pack: &Singles,
        now: DateTime<Utc>,
    ) -> Result<Create> {
        let items = vec![
            self.put_new_item_of(Table::Runs, pack_row(client, policy, pack, now)?)?,
            self.put_item_of(Table::Policies, singles_row(client, policy, pack))?,
        ];
        Ok(match self.transact(Table::Runs, items).await? {
            Write::Done => Create::Done,
            Write::Refused => Create::Exists,
        })
    }

    /// The runs of a pack whose row cannot be read, by their number in it, as far as they can be told: none when there
    /// is no such row.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer.
    pub async fn runs_named_in(
        &self,
        client: &ClientId,
        policy: &PolicyId,
        id: SinglesId,
    ) -> Result<Vec<(u32, RunId)>> {
        let found = self.get(Table::Runs, &key(client, policy, id), true).await?.unwrap_or_default();
        let text = Item::new(Table::Runs, &found).find_text("pack").unwrap_or_default();
        let doc: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
        let named = |member: &serde_json::Value| {
            let launch_s = id.kind.minute.checked_mul(60)?.checked_add(member.get(0)?.as_i64()?)?;
            let revision = u32::try_from(member.get(2)?.as_u64()?).ok()?;
            let launch_at = DateTime::from_timestamp(launch_s, 0)?;
            Some(RunId::new(member.get(1)?.as_str()?.parse().ok()?, revision, launch_at))
        };
        let members = (0..).zip(doc.get("e").and_then(|members| members.as_array()).into_iter().flatten());
        Ok(members.filter_map(|(index, member)| Some((index, named(member)?))).collect())
    }

    /// Writes a pack that goes straight to a slot group. `Exists` when its number was given before.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer.
    pub async fn put_pack(
        &self,
        client: &ClientId,
        policy: &PolicyId,
        pack: &Singles,
        now: DateTime<Utc>,
    ) -> Result<Create> {
        self.put_new(Table::Runs, pack_row(client, policy, pack, now)?).await
    }

    /// Puts a pack into the waiting line that was to go straight to a slot group (`to`): once. `Refused` when it is in
    /// the line already, or its row is gone.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer, or when the transaction still conflicts
    /// with others after `WRITE_ROUNDS` more attempts: nothing is written then.
    pub async fn queue_pack(
        &self,
        client: &ClientId,
        policy: &PolicyId,
        pack: &Singles,
        to: Straight,
    ) -> Result<Write> {
        let update = Update::new(Table::Runs, key(client, policy, pack.id), "REMOVE #to")
            .when("#to = :to")
            .name("#to", "to")
            .value(":to", text(straight_text(to)));
        let items = vec![
            self.update_item_of(update)?,
            self.put_item_of(Table::Policies, singles_row(client, policy, pack))?,
        ];
        self.transact(Table::Runs, items).await
    }

    /// Takes off a pack that it goes straight to a slot group: it waits in the line, goes back there, or has come to its end. Repeating
    /// it changes nothing.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer.
    pub async fn forget_straight(
        &self,
        client: &ClientId,
        policy: &PolicyId,
        pack: &Singles,
    ) -> Result<Write> {
        let Some(to) = pack.straight else { return Ok(Write::Refused) };
        let update = Update::new(Table::Runs, key(client, policy, pack.id), "REMOVE #to")
            .when("#to = :to")
            .name("#to", "to")
            .value(":to", text(straight_text(to)));
        Ok(self.update(update).await?.into())
    }

    /// Keeps the row of a pack for [`HISTORY_DAYS`](tidegate_domain::limits::HISTORY_DAYS) from `now`. `Refused` when it is kept for
    /// longer, or is gone.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer.
    pub async fn retain_pack(
        &self,
        client: &ClientId,
        policy: &PolicyId,
        id: SinglesId,
        now: DateTime<Utc>,
    ) -> Result<Write> {
        self.retain(key(client, policy, id), now).await
    }

    /// The packs of one kind from number `from` on, in the order of their numbers, read consistently.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses a call or does not answer, `StoreError::Corrupt` when one of the packs
    /// cannot be read: whoever appends must know all of them.
    pub async fn packs_of(
        &self,
        client: &ClientId,
        policy: &PolicyId,
        kind: SinglesKind,
        from: u32,
    ) -> Result<Vec<Singles>> {
        let found = self.packs_in(client, kind.minute, sorted_from(policy, kind, from)).await?;
        // Whoever appends must know all of them.
        found.into_iter().map(|found| Ok(found?.1)).collect()
    }

    /// The same as [`Store::packs_of`], without those that cannot be read; each of these is logged.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer.
    pub async fn readable_packs_of(
        &self,
        client: &ClientId,
        policy: &PolicyId,
        kind: SinglesKind,
        from: u32,
    ) -> Result<Vec<Singles>> {
        let found = self.packs_in(client, kind.minute, sorted_from(policy, kind, from)).await?;
        Ok(found.into_iter().filter_map(readable).map(|(_, pack)| pack).collect())
    }

    /// A pack, read consistently; `None` when its number was not given, or its row has expired.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer, `StoreError::Corrupt` when the row cannot
    /// be read.
    pub async fn pack(&self, client: &ClientId, policy: &PolicyId, id: SinglesId) -> Result<Option<Singles>> {
        let found = self.get(Table::Runs, &key(client, policy, id), true).await?;
        found.map(|row| read(client, id, &row)).transpose()
    }

    /// The pack that a run of a single event is in, and the occurrence there; `None` when no readable pack of its
    /// minute has it.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer.
    pub async fn pack_with(
        &self,
        client: &ClientId,
        run: &RunId,
    ) -> Result<Option<(PackMember, Occurrence)>> {
        for (policy, pack) in self.packs_of_minute(client, run.launch_at()).await? {
            if let Some(index) = pack.index_of(run)
                && let Some(member) = pack.member(index)
            {
                return Ok(Some((PackMember { policy, pack: pack.id, index }, member.clone())));
            }
        }
        Ok(None)
    }

    /// The packs of a client, of whatever policy, whose events launch in the minute of an instant. Those that cannot be
    /// read are logged and passed over.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer.
    pub async fn packs_of_minute(
        &self,
        client: &ClientId,
        at: DateTime<Utc>,
    ) -> Result<Vec<(PolicyId, Singles)>> {
        let found = self.packs_in(client, at.timestamp().div_euclid(60), Sorted::All).await?;
        Ok(found.into_iter().filter_map(readable).collect())
    }

    async fn packs_in(
        &self,
        client: &ClientId,
        minute: i64,
        sorted: Sorted,
    ) -> Result<Vec<Result<(PolicyId, Singles)>>> {
        let (mut packs, mut after) = (Vec::new(), None);
        loop {
            let query = Query {
                sorted: sorted.clone(),
                consistent: true,
                after,
                ..Query::of(Table::Runs, partition(client, minute))
            };
            let page = self.query(query).await?;
            packs.extend(page.rows.iter().map(|row| {
                let (policy, id) = name_of(row)?;
                Ok((policy, read(client, id, row)?))
            }));
            after = page.next;
            if after.is_none() {
                return Ok(packs);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tidegate_domain::flow::Flow;
    use tidegate_domain::job::{Count, History, HistoryDays, Payload, Terms};
    use tidegate_domain::retry::Retry;
    use tidegate_domain::target::Target;

    use super::*;

    fn member(number: usize, payload: &str) -> Occurrence {
        Occurrence {
            client: "acme".parse().unwrap(),
            job: format!("job-{number}").parse().unwrap(),
            revision: 3,
            launch_at: DateTime::from_timestamp(1_795_262_640 + number as i64 % 60, 0).unwrap(),
            terms: Terms {
                count: Count::new(1).unwrap(),
                policy: Some("small".parse().unwrap()),
                target: Target::sqs("https://sqs.eu-west-1.amazonaws.com/1/jobs").unwrap(),
                payload: Payload::Inline(payload.to_owned()),
                history: History::All,
                history_days: HistoryDays::DEFAULT,
                max_attempts: None,
                retry: Retry::default(),
                relevancy: None,
                flow: Flow::default(),
                unknown: Default::default(),
            },
        }
    }

    fn pack(members: Vec<Occurrence>) -> Singles {
        let kind = SinglesKind::of(&members[0]).unwrap();
        Singles { id: kind.number(4), as_of: Some(DateTime::UNIX_EPOCH), straight: None, members }
    }

    #[test]
    fn the_stored_form_of_a_pack_is_pinned() {
        let two = pack(vec![member(0, "{\"a\":1}"), member(1, "null")]);
        assert_eq!(
            encode(&two).unwrap(),
            concat!(
                r#"{"v":1,"t":[{"n":1,"p":"small","q":"https://sqs.eu-west-1.amazonaws.com/1/jobs","m":20,"k":{}}],"#,
                r#""e":[[0,"job-0",3,0,"{\"a\":1}"],[1,"job-1",3,0,"null"]]}"#
            )
        );
    }

    #[test]
    fn a_pack_reads_back_and_packs_are_cut_by_events_and_bytes() {
        let large = "x".repeat(398);
        let members = |count, payload: &str| -> Vec<Occurrence> {
            (0..count).map(|number| member(number, &format!("\"{payload}\""))).collect()
        };
        for (count, payload, sizes) in [(600, "a", vec![250, 250, 100]), (100, &*large, vec![74, 26])] {
            let (mut rest, mut packs) = (members(count, payload), Vec::new());
            while !rest.is_empty() {
                let behind = rest.split_off(fitting(&rest));
                packs.push(std::mem::replace(&mut rest, behind));
            }
            assert_eq!(packs.iter().map(Vec::len).collect::<Vec<_>>(), sizes);
            for members in packs {
                let pack = pack(members);
                let text = encode(&pack).unwrap();
                assert!(text.len() <= PACK_BYTES, "{} bytes", text.len());
                let row = Row::new(&Key::new("p", "s"))
                    .with("as_of", number(0))
                    .with("pack", aws_sdk_dynamodb::types::AttributeValue::S(text));
                assert_eq!(read(&"acme".parse().unwrap(), pack.id, &row.into_attributes()).unwrap(), pack);
            }
        }
        assert_eq!(fitting(&[]), 0);
    }
}
