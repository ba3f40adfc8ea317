//! Policies as their clients define them, and the list of those that have something to watch over.

use aws_sdk_dynamodb::types::AttributeValue;
use chrono::{DateTime, Utc};
use tidegate_domain::change::{Change, Kind, policy_fields_that_differ};
use tidegate_domain::ids::{ClientId, PolicyId};
use tidegate_domain::limits::ACTIVE_SHARDS;
use tidegate_domain::policy::{OnExpiry, Policy, PolicyTerms, WaitingRuns};
use tidegate_domain::rate_limit::{Per, RateLimit};
use tidegate_domain::shard::shard_of;
use tidegate_domain::shares::SharePlan;

use crate::changes::{ChangeRow, Changed, Told, change_row};
use crate::doc::{BackpressureDoc, SidelineDoc};
use crate::item::{Attributes, Item, Key, Row, number, text};
use crate::rows::{Query, Sorted, Update};
use crate::tables::Table;
use crate::{Create, Page, PageOf, Result, Store, Write};

/// Active policies on one page: what is woken between two looks at the clock.
const ACTIVE_PER_PAGE: i32 = 500;

/// What the sort keys of policies begin with.
pub(crate) const POLICY: &str = "policy|";

fn key(client: &ClientId, policy: &PolicyId) -> Key {
    Key::new(client.as_str(), format!("{POLICY}{policy}"))
}

fn row(policy: &Policy) -> Row {
    let terms = &policy.terms;
    let rate = terms.rate();
    let per = rate.map(|rate| rate.per().as_str());
    Row::new(&key(&policy.client, &policy.id))
        .with("client", text(policy.client.as_str()))
        .with("policy", text(policy.id.as_str()))
        .with("revision", number(policy.revision))
        .with("max_in_flight", number(terms.max_in_flight()))
        .with("lease_seconds", number(terms.lease_seconds()))
        .with_some("hold", (terms.on_expiry() == OnExpiry::Hold).then_some(AttributeValue::Bool(true)))
        .with_some("rate", rate.map(|rate| number(rate.events())))
        .with_some("rate_per", per.map(text))
        .with_some("rate_burst", rate.and_then(RateLimit::burst).map(number))
        .with_some("max_waiting_runs", terms.max_waiting_runs().map(number))
        .with_some("paused", policy.paused.then_some(AttributeValue::Bool(true)))
        .with_some("backpressure", policy.backpressure.as_ref().map(BackpressureDoc::encode).map(text))
        .with_some("sidelined", policy.sidelined.as_ref().map(SidelineDoc::encode).map(text))
        .with("plan_number", number(policy.plan.number))
        .with("shares", text(policy.plan.encode()))
}

pub(crate) fn read(row: &Attributes) -> Result<Policy> {
    let item = Item::read(Table::Policies, row)?;
    let corrupt = |reason: String| item.corrupt(reason);
    let waiting_runs = item.find_number("max_waiting_runs")?.map(WaitingRuns::new).transpose();
    let terms = PolicyTerms::new(item.number("max_in_flight")?, item.number("lease_seconds")?)
        .map_err(|e| corrupt(e.to_string()))?
        .with_on_expiry(if item.flag("hold") { OnExpiry::Hold } else { OnExpiry::Reclaim })
        .with_rate(read_rate(item)?)
        .with_max_waiting_runs(waiting_runs.map_err(|e| corrupt(e.to_string()))?);
    let backpressure = item.find_text("backpressure").map(BackpressureDoc::decode).transpose();
    let sidelined = item.find_text("sidelined").map(SidelineDoc::decode).transpose();
    let shares = SharePlan::decode(item.number("plan_number")?, item.text("shares")?);
    Ok(Policy {
        client: item.id("client")?,
        id: item.id("policy")?,
        revision: item.number("revision")?,
        terms,
        paused: item.flag("paused"),
        backpressure: backpressure.map_err(|e| corrupt(format!("'backpressure': {e}")))?,
        sidelined: sidelined.map_err(|e| corrupt(format!("'sidelined': {e}")))?,
        plan: shares.ok_or_else(|| corrupt("'shares' is no list of shares".to_owned()))?,
    })
}

fn read_rate(item: Item<'_>) -> Result<Option<RateLimit>> {
    let Some(events) = item.find_number("rate")? else { return Ok(None) };
    let per = Per::from_word(item.text("rate_per")?);
    let per = per.ok_or_else(|| item.corrupt("'rate_per' is no length of time"))?;
    let rate = RateLimit::new(events, per, item.find_number("rate_burst")?);
    rate.map(Some).map_err(|e| item.corrupt(e.to_string()))
}

/// The condition that a policy and its plan are those that were seen.
const AS_SEEN: &str = "revision = :revision AND plan_number = :plan";

fn with_seen(update: Update, seen: &Policy) -> Update {
    update.value(":revision", number(seen.revision)).value(":plan", number(seen.plan.number))
}

/// A policy that has holders, waiting runs, or had them lately: each tick wakes those on the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActivePolicy {
    /// Whose it is.
    pub client: ClientId,
    /// Its name within the client.
    pub policy: PolicyId,
    /// When something last joined its line, to the millisecond.
    pub touched_at: DateTime<Utc>,
    /// Since when it has been on the list, to the millisecond.
    pub since: DateTime<Utc>,
    /// When the rows of all that waited in it were last kept for longer, to the millisecond; `None` before the first time.
    pub retained_at: Option<DateTime<Utc>>,
}

fn active_key(client: &ClientId, policy: &PolicyId) -> Key {
    let name = format!("{client}|{policy}");
    Key::new(format!("active|{}", shard_of(&name, ACTIVE_SHARDS)), name)
}

fn read_active(row: &Attributes) -> Result<ActivePolicy> {
    let item = Item::read(Table::Policies, row)?;
    Ok(ActivePolicy {
        client: item.id("client")?,
        policy: item.id("policy")?,
        touched_at: item.instant_ms("touched_at")?,
        since: item.instant_ms("since")?,
        retained_at: item.find_instant_ms("retained_at")?,
    })
}

/// What is recorded of a change from one version of a policy, or nothing, to another, or nothing.
fn change_of(old: Option<&Policy>, new: Option<&Policy>, change: &Change) -> Option<Row> {
    let policy = new.or(old)?;
    let changed = Changed {
        client: &policy.client,
        kind: Kind::Policy,
        id: policy.id.as_str(),
        revision: new.map(|new| new.revision),
    };
    let fields = old.zip(new).map(|(old, new)| policy_fields_that_differ(old, new)).unwrap_or_default();
    let before_revision = old.map(|old| old.revision);
    let told = Told { before_revision, fields, before: old.map(row), after: new.map(row), of: None };
    Some(change_row(changed, change, told))
}

impl ChangeRow {
    /// What a policy said before and after the change; `None`: it was not there, or it is no change of a policy.
    ///
    /// # Errors
    /// `StoreError::Corrupt` when one of them cannot be read.
    pub fn policies(&self) -> Result<(Option<Policy>, Option<Policy>)> {
        let is_one = self.kind == Kind::Policy.as_str();
        let told = |row: &Option<Attributes>| row.as_ref().filter(|_| is_one).map(read).transpose();
        Ok((told(&self.before)?, told(&self.after)?))
    }
}

impl Store {
    /// Adds a policy, and records the change: both or neither. `Exists` when the client has one of this name, which stays as it
    /// is.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer, or when the transaction still conflicts
    /// with others after `WRITE_ROUNDS` more attempts: nothing is written then.
    pub async fn create_policy(&self, policy: &Policy, change: &Change) -> Result<Create> {
        let put = self.put_new_item_of(Table::Policies, row(policy))?;
        Ok(match self.recorded(put, change_of(None, Some(policy), change)).await? {
            Write::Done => Create::Done,
            Write::Refused => Create::Exists,
        })
    }

    /// A policy, read consistently; `None` when the client has none of this name.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer, `StoreError::Corrupt` when the row cannot
    /// be read.
    pub async fn policy(&self, client: &ClientId, policy: &PolicyId) -> Result<Option<Policy>> {
        self.get(Table::Policies, &key(client, policy), true).await?.as_ref().map(read).transpose()
    }

    /// A page of a client's policies, by name.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer. A row that cannot be read is no error: it
    /// is among the `unreadable` ones of the page.
    pub async fn policies(&self, client: &ClientId, page: impl Into<PageOf>) -> Result<Page<Policy>> {
        let sorted = Sorted::Prefix(POLICY.to_owned());
        let query = Query { sorted, ..Query::of(Table::Policies, client.as_str()) };
        Ok(self.query(query.page(page.into())).await?.read(Table::Policies, read))
    }

    /// Writes a policy over the one that was seen, and records the `change`, if there is one: both or neither. `Refused` when its
    /// revision or its plan is another by now, or it is gone.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer, or when the transaction still conflicts
    /// with others after `WRITE_ROUNDS` more attempts: nothing is written then.
    pub async fn replace_policy(
        &self,
        policy: &Policy,
        seen: &Policy,
        change: Option<&Change>,
    ) -> Result<Write> {
        let update = with_seen(Update::rewrite(Table::Policies, row(policy)).when(AS_SEEN), seen);
        match change {
            None => Ok(self.update(update).await?.into()),
            Some(change) => {
                let update = self.update_item_of(update)?;
                self.recorded(update, change_of(Some(seen), Some(policy), change)).await
            }
        }
    }

    /// Shares a policy's limit out anew. `Refused` unless the policy and its plan are still those that were seen.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer.
    pub async fn replace_plan(&self, seen: &Policy, plan: &SharePlan) -> Result<Write> {
        let key = key(&seen.client, &seen.id);
        let update = Update::new(Table::Policies, key, "SET plan_number = :new, shares = :shares")
            .when(AS_SEEN)
            .value(":new", number(plan.number))
            .value(":shares", text(plan.encode()));
        Ok(self.update(with_seen(update, seen)).await?.into())
    }

    /// Removes a policy at the revision that was seen, and records the change: both or neither. `Refused` when another revision is
    /// stored, or none.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer, or when the transaction still conflicts
    /// with others after `WRITE_ROUNDS` more attempts: nothing is written then.
    pub async fn delete_policy(&self, policy: &Policy, change: &Change) -> Result<Write> {
        let values = Attributes::from([(":seen".to_owned(), number(policy.revision))]);
        let key = key(&policy.client, &policy.id);
        let gone = self.delete_when_item_of(Table::Policies, &key, "revision = :seen", values)?;
        self.recorded(gone, change_of(Some(policy), None, change)).await
    }

    /// Puts a policy on the list that each tick looks after, or says at `now` that it is still in use. Call it *before*
    /// something joins its line, so that no line with something in it is off the list.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer.
    pub async fn touch_active(&self, client: &ClientId, policy: &PolicyId, now: DateTime<Utc>) -> Result<()> {
        let changes = "SET #client = :client, #policy = :policy, touched_at = :now, #since = if_not_exists(#since, :now)";
        let update = Update::new(Table::Policies, active_key(client, policy), changes)
            .name("#client", "client")
            .name("#policy", "policy")
            .name("#since", "since")
            .value(":client", text(client.as_str()))
            .value(":policy", text(policy.as_str()))
            .value(":now", number(now.timestamp_millis()));
        self.update(update).await.map(drop)
    }

    /// A page of up to 500 of the active policies of one shard, 0 to [`ACTIVE_SHARDS`]; the first when `after` is
    /// `None`, else what follows a page whose `next` it was.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer. A row that cannot be read is no error: it
    /// is among the `unreadable` ones of the page.
    pub async fn active_policies(&self, shard: u32, after: Option<String>) -> Result<Page<ActivePolicy>> {
        let limit = Some(ACTIVE_PER_PAGE);
        let query = Query { after, limit, ..Query::of(Table::Policies, format!("active|{shard}")) };
        Ok(self.query(query).await?.read(Table::Policies, read_active))
    }

    /// A policy's place on the list of active ones, read consistently; `None` when it is not on it.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer, `StoreError::Corrupt` when the row cannot
    /// be read.
    pub async fn active_policy(&self, client: &ClientId, policy: &PolicyId) -> Result<Option<ActivePolicy>> {
        let row = self.get(Table::Policies, &active_key(client, policy), true).await?;
        row.as_ref().map(read_active).transpose()
    }

    /// Says that the rows of all that waits in a policy were kept for longer. `Refused` when it is off the list.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer.
    pub async fn note_retained(
        &self,
        client: &ClientId,
        policy: &PolicyId,
        now: DateTime<Utc>,
    ) -> Result<Write> {
        let update = Update::new(Table::Policies, active_key(client, policy), "SET retained_at = :now")
            .when("attribute_exists(pk)")
            .value(":now", number(now.timestamp_millis()));
        Ok(self.update(update).await?.into())
    }

    /// Takes an idle policy off the list. `Refused` when it was touched since it was seen, or is off it already.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer.
    pub async fn retire_active(&self, active: &ActivePolicy) -> Result<Write> {
        let seen = number(active.touched_at.timestamp_millis());
        let values = Attributes::from([(":seen".to_owned(), seen)]);
        let key = active_key(&active.client, &active.policy);
        self.remove_when(Table::Policies, &key, "touched_at = :seen", values).await
    }
}
