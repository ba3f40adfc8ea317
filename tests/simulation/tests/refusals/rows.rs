//! The clauses of runs, lines, policies, clients and what consumers say.

use anyhow::{Context as _, Result};
use chrono::Duration;
use tidegate_domain::backpressure::{Backpressure, Sign};
use tidegate_domain::calendar::{Calendar, Exclusions};
use tidegate_domain::change::{Change, What};
use tidegate_domain::flow::Overlap;
use tidegate_domain::ids::{ClientId, RunId};
use tidegate_domain::job::HistoryDays;
use tidegate_domain::limits::{CLIENT_KEYS, SECRETS};
use tidegate_domain::occurrence::Occurrence;
use tidegate_domain::pack::PackId;
use tidegate_domain::policy::{Policy, PolicyTerms};
use tidegate_domain::quota::{Ask, CreatesPerMinute, Quotas};
use tidegate_domain::shares::SharePlan;
use tidegate_domain::sideline::{Sideline, SidelineOf, Sidelines};
use tidegate_domain::slots::Outcome;
use tidegate_simulation::World;
use tidegate_simulation::world::{JobSpec, stored};
use tidegate_store::client_secrets::ClientSecret;
use tidegate_store::clients::{Deletion, Stage, Suspension};
use tidegate_store::events::{EventRow, HistoryOf, HistoryRow, Record};
use tidegate_store::keys::ApiKey;
use tidegate_store::line::{LineEntry, Pending, Portion, Take};
use tidegate_store::made::{Made, MadeKind};
use tidegate_store::sidelines::SidelinedChunk;
use tidegate_store::{ClientRecord, KeyHash, Store};

use super::{URL, at, cases, is_refused, is_there, take_of_quotas};

cases! {
    "active delete: touched_at = :seen" => policy_that_became_active_again,
    "active note retained: attribute_exists(pk)" => note_of_a_policy_that_is_idle,
    "calendar transact delete: revision = :seen" => calendar_that_was_replaced_is_deleted,
    "calendar transact put: attribute_not_exists(pk)" => second_calendar,
    "calendar transact rewrite: revision = :old" => calendar_that_was_replaced_is_replaced,
    "client transact replace: revision = :seen" => client_that_was_changed,
    "client begin deletion: revision = :seen" => client_that_was_changed_is_deleted,
    "client move deletion: deleting = :seen" => step_of_a_deletion_that_was_taken,
    "client delete: deleting = :seen" => deletion_that_goes_on_is_ended,
    "client transact suspend: revision = :seen" => client_that_was_changed_is_suspended,
    "client transact replace secrets: webhook_secret = :seen" => secret_that_was_replaced,
    "client transact count keys: live_keys < :most" => key_beyond_the_most,
    "client transact put: attribute_not_exists(pk)" => second_client,
    "client-secret transact rewrite: revision = :old" => value_that_was_replaced_is_replaced,
    "client-secret transact delete: revision = :seen" => value_that_was_replaced_is_deleted,
    "client-secret transact put: attribute_not_exists(pk)" => second_value,
    "creates take: creates <= :creates_room" => one_create_too_many,
    "creates take: in_minute = :minute" => creates_of_another_minute,
    "line delete: cur >= n" => entry_of_which_something_is_left,
    "line exhaust singles: cur = :cur" => rest_of_which_a_group_took_meanwhile,
    "line transact delete: attribute_exists(pk)" => event_that_rejoined_its_line,
    "line decide overlap: ov = :seen" => rule_that_has_spoken,
    "line take range: attribute_not_exists(g#) OR g# < :grant" => range_that_was_taken,
    "pace claim wake: attribute_not_exists(wake_at) OR wake_at <= :now OR wake_at > :due" => later_wake,
    "made transact put: attribute_not_exists(pk)" => second_key_of_an_idempotency_key,
    "policy transact delete: revision = :seen" => policy_that_was_replaced_is_deleted,
    "policy transact put: attribute_not_exists(pk)" => second_policy,
    "policy transact rewrite: plan_number = :plan" => policy_whose_plan_moved_on_is_changed,
    "policy transact rewrite: revision = :revision" => policy_that_was_replaced_is_changed,
    "policy rewrite: plan_number = :plan" => policy_whose_plan_moved_on_is_replaced,
    "policy rewrite: revision = :revision" => policy_that_was_replaced_is_replaced,
    "policy replace plan: plan_number = :plan" => plan_that_moved_on,
    "policy replace plan: revision = :revision" => plan_of_a_policy_that_was_replaced,
    "secret-count transact count: attribute_not_exists(secrets) OR secrets < :most" => one_secret_too_many,
    "slots put: attribute_not_exists(pk)" => second_slot_group,
    "dirty mark: attribute_not_exists(dirty_until) OR dirty_until < :until" => earlier_mark,
    "dirty sideline: attribute_not_exists(sidelined)" => first_sideline_that_is_a_second,
    "dirty sideline: sidelined = :seen" => sideline_that_follows_another,
    "dirty transact sideline: attribute_not_exists(sidelined)" => first_sideline_that_is_a_recorded_second,
    "dirty transact sideline: sidelined = :seen" => recorded_sideline_that_follows_another,
    "sidelined delete: draw = :seen" => chunk_that_was_set_aside_anew,
    "event put: attribute_not_exists(pk) OR tries <= :tries" => end_of_an_earlier_delivery,
    "said put: attribute_not_exists(fence) OR fence <= :fence" => word_of_a_former_lease,
    "target rewrite: attribute_not_exists(pk)" => first_sign_that_is_a_second,
    "target rewrite: backpressure = :seen" => sign_that_follows_another,
}

pub(crate) fn client() -> Result<ClientId> {
    Ok("acme".parse()?)
}

pub(crate) fn run() -> Result<RunId> {
    Ok("report.1.1795262640".parse()?)
}

async fn policy_that_became_active_again(world: &World, store: &Store) -> Result<bool> {
    let (plain, client, policy) = (world.engine.store(), client()?, "small".parse()?);
    plain.touch_active(&client, &policy, at(0)).await?;
    let seen = plain.active_policy(&client, &policy).await?.context("it is not active")?;
    plain.touch_active(&client, &policy, at(60)).await?;
    Ok(is_refused(store.retire_active(&seen).await?))
}

/// A policy that left the list meanwhile does not come back as a row without a name.
async fn note_of_a_policy_that_is_idle(_: &World, store: &Store) -> Result<bool> {
    Ok(is_refused(store.note_retained(&client()?, &"small".parse()?, at(0)).await?))
}

pub(crate) fn changed() -> Change {
    Change::by_nobody(What::Changed, at(0))
}

fn policy(revision: u32, plan: u64) -> Result<Policy> {
    Ok(Policy {
        client: client()?,
        id: "small".parse()?,
        revision,
        terms: PolicyTerms::new(8, 60)?,
        paused: false,
        backpressure: None,
        sidelined: None,
        plan: SharePlan::new(plan, 8),
    })
}

async fn second_policy(world: &World, store: &Store) -> Result<bool> {
    world.engine.store().create_policy(&policy(1, 1)?, &changed()).await?;
    Ok(is_there(store.create_policy(&policy(1, 1)?, &changed()).await?))
}

/// A policy whose client has replaced it, and whose plan was brought forward since.
async fn replaced(world: &World) -> Result<()> {
    let plain = world.engine.store();
    plain.create_policy(&policy(1, 1)?, &changed()).await?;
    anyhow::ensure!(!is_refused(plain.replace_policy(&policy(2, 2)?, &policy(1, 1)?, None).await?));
    Ok(())
}

async fn policy_that_was_replaced_is_replaced(world: &World, store: &Store) -> Result<bool> {
    replaced(world).await?;
    Ok(is_refused(store.replace_policy(&policy(2, 3)?, &policy(1, 2)?, None).await?))
}

async fn policy_whose_plan_moved_on_is_replaced(world: &World, store: &Store) -> Result<bool> {
    replaced(world).await?;
    Ok(is_refused(store.replace_policy(&policy(3, 2)?, &policy(2, 1)?, None).await?))
}

/// The same of changes that are recorded.
async fn policy_that_was_replaced_is_changed(world: &World, store: &Store) -> Result<bool> {
    replaced(world).await?;
    Ok(is_refused(store.replace_policy(&policy(2, 3)?, &policy(1, 2)?, Some(&changed())).await?))
}

async fn policy_whose_plan_moved_on_is_changed(world: &World, store: &Store) -> Result<bool> {
    replaced(world).await?;
    Ok(is_refused(store.replace_policy(&policy(3, 2)?, &policy(2, 1)?, Some(&changed())).await?))
}

async fn policy_that_was_replaced_is_deleted(world: &World, store: &Store) -> Result<bool> {
    replaced(world).await?;
    Ok(is_refused(store.delete_policy(&policy(1, 2)?, &changed()).await?))
}

async fn plan_of_a_policy_that_was_replaced(world: &World, store: &Store) -> Result<bool> {
    replaced(world).await?;
    Ok(is_refused(store.replace_plan(&policy(1, 2)?, &SharePlan::new(3, 8)).await?))
}

async fn plan_that_moved_on(world: &World, store: &Store) -> Result<bool> {
    replaced(world).await?;
    Ok(is_refused(store.replace_plan(&policy(2, 1)?, &SharePlan::new(2, 8)).await?))
}

fn calendar(revision: u32) -> Result<Calendar> {
    Ok(Calendar { client: client()?, id: "holidays".parse()?, revision, exclusions: Exclusions::default() })
}

async fn second_calendar(world: &World, store: &Store) -> Result<bool> {
    world.engine.store().create_calendar(&calendar(1)?, &changed()).await?;
    Ok(is_there(store.create_calendar(&calendar(1)?, &changed()).await?))
}

async fn calendar_that_was_replaced_is_replaced(world: &World, store: &Store) -> Result<bool> {
    world.engine.store().create_calendar(&calendar(2)?, &changed()).await?;
    Ok(is_refused(store.replace_calendar(&calendar(2)?, &calendar(1)?, &changed()).await?))
}

async fn calendar_that_was_replaced_is_deleted(world: &World, store: &Store) -> Result<bool> {
    world.engine.store().create_calendar(&calendar(2)?, &changed()).await?;
    Ok(is_refused(store.delete_calendar(&calendar(1)?, &changed()).await?))
}

fn value(name: u32, revision: u32) -> Result<ClientSecret> {
    let (client, id) = (client()?, format!("s{name}").parse()?);
    Ok(ClientSecret { client, id, revision, changed_at: at(0), sealed: "1.AAAA".to_owned() })
}

/// Takes of a quota of three in a minute.
pub(crate) async fn take_creates(store: &Store, wanted: usize, second: i64) -> Result<usize> {
    let quotas = Quotas { creates_per_minute: CreatesPerMinute::new(3).ok(), ..Quotas::default() };
    take_of_quotas(store, &quotas, &vec![Ask { is_create: true, ..Ask::default() }; wanted], second).await
}

async fn one_create_too_many(world: &World, store: &Store) -> Result<bool> {
    take_creates(world.engine.store(), 3, 0).await?;
    Ok(take_creates(store, 1, 0).await? == 0)
}

/// What is taken in another minute would count as if it were of that, and the next minute begin anew for who comes next.
async fn creates_of_another_minute(world: &World, store: &Store) -> Result<bool> {
    take_creates(world.engine.store(), 1, 0).await?;
    let granted = take_creates(store, 2, 60).await? + take_creates(store, 3, 60).await?;
    Ok(granted == 3)
}

async fn second_value(world: &World, store: &Store) -> Result<bool> {
    world.engine.store().create_client_secret(&value(0, 1)?, &changed()).await?;
    Ok(is_refused(store.create_client_secret(&value(0, 1)?, &changed()).await?))
}

async fn value_that_was_replaced_is_replaced(world: &World, store: &Store) -> Result<bool> {
    world.engine.store().create_client_secret(&value(0, 2)?, &changed()).await?;
    Ok(is_refused(store.replace_client_secret(&value(0, 2)?, &changed()).await?))
}

async fn value_that_was_replaced_is_deleted(world: &World, store: &Store) -> Result<bool> {
    world.engine.store().create_client_secret(&value(0, 2)?, &changed()).await?;
    Ok(is_refused(store.delete_client_secret(&value(0, 1)?, &changed()).await?))
}

async fn one_secret_too_many(world: &World, store: &Store) -> Result<bool> {
    for name in 0..SECRETS {
        world.engine.store().create_client_secret(&value(name, 1)?, &changed()).await?;
    }
    Ok(is_refused(store.create_client_secret(&value(SECRETS, 1)?, &changed()).await?))
}

pub(crate) fn registered(secret: &str) -> Result<ClientRecord> {
    stored::registered(secret, at(0))
}

pub(crate) fn api_key(key: &str) -> Result<ApiKey> {
    stored::api_key(key, at(0))
}

/// A key beyond the most would be one that nobody counted.
async fn key_beyond_the_most(world: &World, store: &Store) -> Result<bool> {
    let plain = world.engine.store();
    plain.create_client(&registered("whsec_AAAA")?, &api_key("1")?, &changed()).await?;
    for number in 2..=CLIENT_KEYS {
        anyhow::ensure!(!is_refused(plain.create_key(&api_key(&number.to_string())?, &changed()).await?));
    }
    Ok(is_refused(store.create_key(&api_key("one more")?, &changed()).await?))
}

/// Of two calls with one idempotency key, the second would make a key that nobody may know.
async fn second_key_of_an_idempotency_key(world: &World, store: &Store) -> Result<bool> {
    let plain = world.engine.store();
    plain.create_client(&registered("whsec_AAAA")?, &api_key("1")?, &changed()).await?;
    let made = |id: &str| -> Result<Made> {
        let (key, said) = (KeyHash::of("once"), KeyHash::of("{}"));
        Ok(Made {
            client: client()?,
            kind: MadeKind::Key,
            key,
            said,
            id: id.to_owned(),
            salt: None,
            at: at(0),
        })
    };
    anyhow::ensure!(!is_refused(plain.create_key_once(&api_key("2")?, &made("2")?, &changed()).await?));
    Ok(is_refused(store.create_key_once(&api_key("3")?, &made("3")?, &changed()).await?))
}

/// Of two calls that change a client at once, the second would undo what the first said.
async fn client_that_was_changed(world: &World, store: &Store) -> Result<bool> {
    let plain = world.engine.store();
    plain.create_client(&registered("whsec_AAAA")?, &api_key("first")?, &changed()).await?;
    let recorded = changed();
    let changed = ClientRecord { revision: 2, ..registered("whsec_AAAA")? };
    anyhow::ensure!(!is_refused(
        plain.replace_client(&changed, &registered("whsec_AAAA")?, &recorded).await?
    ));
    Ok(is_refused(store.replace_client(&changed, &registered("whsec_AAAA")?, &recorded).await?))
}

/// Of two calls at once, the second would suspend a client that an admin has just resumed.
async fn client_that_was_changed_is_suspended(world: &World, store: &Store) -> Result<bool> {
    let plain = world.engine.store();
    plain.create_client(&registered("whsec_AAAA")?, &api_key("first")?, &changed()).await?;
    let recorded = changed();
    let changed = ClientRecord { revision: 2, ..registered("whsec_AAAA")? };
    anyhow::ensure!(!is_refused(
        plain.replace_client(&changed, &registered("whsec_AAAA")?, &recorded).await?
    ));
    let suspension = Suspension { since_ms: 0, because: "abuse".to_owned(), held_before: false };
    Ok(is_refused(
        store.replace_suspension(&ClientRecord { suspended: Some(suspension), ..changed }, &recorded).await?,
    ))
}

fn deletion(step: u64) -> Deletion {
    Deletion {
        since_ms: 0,
        stage: Stage::Index,
        after: None,
        step,
        removed: 0,
        not_before_ms: 0,
        moved_ms: 0,
    }
}

/// Of two calls at once, the second would begin anew what the first has begun.
async fn client_that_was_changed_is_deleted(world: &World, store: &Store) -> Result<bool> {
    let (plain, seen) = (world.engine.store(), registered("whsec_AAAA")?);
    plain.create_client(&seen, &api_key("first")?, &changed()).await?;
    anyhow::ensure!(!is_refused(plain.begin_deletion(&seen, &deletion(3)).await?));
    Ok(is_refused(store.begin_deletion(&seen, &deletion(1)).await?))
}

/// A client whose deletion has come from its first step to its second.
async fn halfway_deleted(plain: &Store) -> Result<()> {
    let seen = registered("whsec_AAAA")?;
    plain.create_client(&seen, &api_key("first")?, &changed()).await?;
    plain.begin_deletion(&seen, &deletion(1)).await?;
    anyhow::ensure!(!is_refused(plain.move_deletion(&client()?, &deletion(1), &deletion(2)).await?));
    Ok(())
}

async fn step_of_a_deletion_that_was_taken(world: &World, store: &Store) -> Result<bool> {
    halfway_deleted(world.engine.store()).await?;
    Ok(is_refused(store.move_deletion(&client()?, &deletion(1), &deletion(2)).await?))
}

/// Whoever has the name by then would lose it.
async fn deletion_that_goes_on_is_ended(world: &World, store: &Store) -> Result<bool> {
    halfway_deleted(world.engine.store()).await?;
    Ok(is_refused(store.end_deletion(&client()?, &deletion(1)).await?))
}

/// Of two calls that replace a secret at once, the second would forget the secret of the first, which its client was shown.
async fn secret_that_was_replaced(world: &World, store: &Store) -> Result<bool> {
    let plain = world.engine.store();
    plain.create_client(&registered("whsec_AAAA")?, &api_key("first")?, &changed()).await?;
    anyhow::ensure!(!is_refused(
        plain.replace_webhook_secrets(&registered("whsec_BBBB")?, "whsec_AAAA", &changed()).await?
    ));
    Ok(is_refused(store.replace_webhook_secrets(&registered("whsec_CCCC")?, "whsec_AAAA", &changed()).await?))
}

fn strained(seen: Option<&Backpressure>, asks_s: i64) -> Result<Backpressure> {
    let sign = Sign { asks_for: Some(Duration::seconds(asks_s)), because: "busy".to_owned() };
    Backpressure::after(seen, 1, &sign, at(0)).context("it says nothing new")
}

const HOOK: &str = "https://acme.example/hook";

/// A target that asked for an hour would be open in a minute, since another call asked for that.
async fn first_sign_that_is_a_second(world: &World, store: &Store) -> Result<bool> {
    let (acme, plain) = (client()?, world.engine.store());
    plain.replace_target_backpressure((&acme, HOOK), &strained(None, 3_600)?, None).await?;
    Ok(is_refused(store.replace_target_backpressure((&acme, HOOK), &strained(None, 60)?, None).await?))
}

async fn sign_that_follows_another(world: &World, store: &Store) -> Result<bool> {
    let (acme, plain) = (client()?, world.engine.store());
    let first = strained(None, 60)?;
    plain.replace_target_backpressure((&acme, HOOK), &first, None).await?;
    let longer = strained(Some(&first), 3_600)?;
    plain.replace_target_backpressure((&acme, HOOK), &longer, Some(&first)).await?;
    let shorter = strained(Some(&first), 120)?;
    Ok(is_refused(store.replace_target_backpressure((&acme, HOOK), &shorter, Some(&first)).await?))
}

async fn second_client(world: &World, store: &Store) -> Result<bool> {
    let registered = registered("whsec_AAAA")?;
    world.engine.store().create_client(&registered, &api_key("first")?, &changed()).await?;
    Ok(is_there(store.create_client(&registered, &api_key("second")?, &changed()).await?))
}

/// A firing of a job of so many events.
pub(crate) fn occurrence(events: u64) -> Result<Occurrence> {
    let run = run()?;
    let draft = JobSpec::at(run.launch_at(), URL)?.of(events)?.under("small")?.into_draft();
    Ok(Occurrence {
        client: client()?,
        job: run.job().clone(),
        revision: run.revision(),
        launch_at: run.launch_at(),
        terms: draft.terms,
    })
}

/// A run of four events in the line, and its line_key there.
pub(crate) async fn waiting(world: &World) -> Result<String> {
    let plain = world.engine.store();
    plain.enqueue_run(&occurrence(4)?, (&"small".parse()?, 1), at(0)).await?;
    let line = plain.line(&client()?, &"small".parse()?, None).await?;
    Ok(line.rows.first().context("the line is empty")?.line_key.clone())
}

pub(crate) async fn take(store: &Store, line_key: &str, seen: Option<&LineEntry>) -> Result<Take> {
    let (client, policy) = (client()?, "small".parse()?);
    Ok(store
        .take_range(
            (&client, &policy, 0),
            line_key,
            7,
            (Portion::Part { cap: 1, of: 4, least: 1, step: 1, behind: 0 }, 4),
            seen,
        )
        .await?)
}

/// What one worker let go another would have wait, who asked before the end of the run before it.
async fn rule_that_has_spoken(world: &World, store: &Store) -> Result<bool> {
    let (plain, client, policy) = (world.engine.store(), client()?, "small".parse()?);
    let mut ruled = occurrence(4)?;
    ruled.terms.flow.overlap = Overlap::BufferOne;
    plain.enqueue_run(&ruled, (&policy, 1), at(0)).await?;
    let line = plain.line(&client, &policy, None).await?;
    let seen = line.rows.first().context("the line is empty")?;
    plain.decide_overlap((&client, &policy), seen, None).await?;
    Ok(is_refused(store.decide_overlap((&client, &policy), seen, Some(Pending::Buffered)).await?))
}

/// A worker that finishes a refill for the second time: the entry is as it was seen, but the range is taken.
async fn range_that_was_taken(world: &World, store: &Store) -> Result<bool> {
    let (line_key, plain) = (waiting(world).await?, world.engine.store());
    let first = take(plain, &line_key, None).await?;
    let seen = plain.line_entry(&client()?, &"small".parse()?, &line_key).await?;
    Ok(take(store, &line_key, seen.as_ref()).await? == first)
}

async fn entry_of_which_something_is_left(world: &World, store: &Store) -> Result<bool> {
    let line_key = waiting(world).await?;
    Ok(is_refused(store.remove_exhausted(&client()?, &"small".parse()?, &line_key).await?))
}

/// It would free the tokens of the first.
async fn second_slot_group(world: &World, store: &Store) -> Result<bool> {
    let group = super::slots::serving(world.engine.store(), 0).await?;
    Ok(is_there(store.create_slot_group(&group).await?))
}

async fn later_wake(world: &World, store: &Store) -> Result<bool> {
    let (client, policy) = (client()?, "small".parse()?);
    world.engine.store().claim_wake(&client, &policy, at(60), at(0)).await?;
    Ok(is_refused(store.claim_wake(&client, &policy, at(90), at(0)).await?))
}

async fn earlier_mark(world: &World, store: &Store) -> Result<bool> {
    world.engine.store().mark_dirty(&client()?, at(60)).await?;
    store.mark_dirty(&client()?, at(30)).await?;
    Ok(store.recheck(&client()?).await?.until == Some(at(60)))
}

/// What another call said would be forgotten.
async fn first_sideline_that_is_a_second(world: &World, store: &Store) -> Result<bool> {
    let (plain, client) = (world.engine.store(), client()?);
    let seen = plain.recheck(&client).await?;
    plain.replace_sidelines(&client, &sidelined("first"), &seen, None).await?;
    Ok(is_refused(store.replace_sidelines(&client, &sidelined("second"), &seen, None).await?))
}

async fn sideline_that_follows_another(world: &World, store: &Store) -> Result<bool> {
    let (plain, client) = (world.engine.store(), client()?);
    plain.replace_sidelines(&client, &sidelined("first"), &plain.recheck(&client).await?, None).await?;
    let seen = plain.recheck(&client).await?;
    plain.replace_sidelines(&client, &sidelined("second"), &seen, None).await?;
    Ok(is_refused(store.replace_sidelines(&client, &sidelined("third"), &seen, None).await?))
}

/// The same of changes that are recorded.
async fn first_sideline_that_is_a_recorded_second(world: &World, store: &Store) -> Result<bool> {
    let (plain, client, changed) = (world.engine.store(), client()?, changed());
    let seen = plain.recheck(&client).await?;
    plain.replace_sidelines(&client, &sidelined("first"), &seen, None).await?;
    let recorded = Some((&SidelineOf::Client, &changed));
    Ok(is_refused(store.replace_sidelines(&client, &sidelined("second"), &seen, recorded).await?))
}

async fn recorded_sideline_that_follows_another(world: &World, store: &Store) -> Result<bool> {
    let (plain, client, changed) = (world.engine.store(), client()?, changed());
    plain.replace_sidelines(&client, &sidelined("first"), &plain.recheck(&client).await?, None).await?;
    let seen = plain.recheck(&client).await?;
    plain.replace_sidelines(&client, &sidelined("second"), &seen, None).await?;
    let recorded = Some((&SidelineOf::Client, &changed));
    Ok(is_refused(store.replace_sidelines(&client, &sidelined("third"), &seen, recorded).await?))
}

fn sidelined(because: &str) -> Sidelines {
    Sidelines::default().with(&SidelineOf::Client, Some(Sideline::new(at(0), because)))
}

/// It would be lost: it came back while it drained.
async fn chunk_that_was_set_aside_anew(world: &World, store: &Store) -> Result<bool> {
    let (plain, client, of) = (world.engine.store(), client()?, SidelineOf::Client);
    let chunk = |draw| SidelinedChunk { place: "1".to_owned(), body: "{}".to_owned(), events: 1, draw };
    plain.set_chunk_aside(&client, &of, &chunk(1)).await?;
    plain.set_chunk_aside(&client, &of, &chunk(2)).await?;
    Ok(is_refused(store.forget_chunk(&client, &of, &chunk(1)).await?))
}

async fn rest_of_which_a_group_took_meanwhile(world: &World, store: &Store) -> Result<bool> {
    let (line_key, plain) = (waiting(world).await?, world.engine.store());
    let seen = plain.line_entry(&client()?, &"small".parse()?, &line_key).await?.context("no entry")?;
    take(plain, &line_key, None).await?;
    Ok(is_refused(store.exhaust_singles(&client()?, &"small".parse()?, &seen).await?))
}

/// It would wait there twice.
async fn event_that_rejoined_its_line(_: &World, store: &Store) -> Result<bool> {
    let line_key =
        format!("~report 5|253402300799|+t000.000.1795262640.001795262640.0001.0000000001|{}", run()?);
    let (pack, launch_at) = (PackId::Run(run()?), at(0));
    let gone =
        LineEntry { pack, launch_at, line_key, count: 1, cursor: 0, groups: Vec::new(), overlap: None };
    Ok(is_refused(store.rejoin((&client()?, &"small".parse()?), &gone, at(0)).await?))
}

/// What is kept late of the delivery before does not hide why the last one failed.
async fn end_of_an_earlier_delivery(world: &World, store: &Store) -> Result<bool> {
    let ended = |attempts: u8| -> Result<Record> {
        let event =
            EventRow { index: 0, delivered: false, attempts, at: at(0), reason: Some("down".to_owned()) };
        let (of, kept) = (HistoryOf::Run(run()?), HistoryDays::DEFAULT);
        Ok(Record::Event { client: client()?, of, event, kept })
    };
    let plain = world.engine.store();
    plain.keep(&[ended(2)?]).await?;
    store.keep(&[ended(1)?]).await?;
    let page = plain.history(&client()?, &HistoryOf::Run(run()?), None).await?;
    Ok(page.rows.iter().any(|row| matches!(row, HistoryRow::Event(event) if event.attempts == 2)))
}

/// What the consumer says under the later lease stays, whichever call arrives last.
async fn word_of_a_former_lease(world: &World, store: &Store) -> Result<bool> {
    let said = |fence: u64, text: &str| -> Result<Record> {
        let (of, text) = (HistoryOf::Run(run()?), text.to_owned());
        Ok(Record::ReleaseNote {
            client: client()?,
            of,
            index: 0,
            fence,
            outcome: Outcome::Failed,
            text,
            at: at(0),
            kept: HistoryDays::DEFAULT,
        })
    };
    world.engine.store().keep(&[said(2, "later")?]).await?;
    store.keep(&[said(1, "former")?]).await?;
    let page = world.engine.store().history(&client()?, &HistoryOf::Run(run()?), None).await?;
    Ok(page.rows.iter().any(|row| matches!(row, HistoryRow::ReleaseNote(said) if said.text == "later")))
}
