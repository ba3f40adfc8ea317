//! Attributes and members that only a newer version knows: ignored on reading, kept on rewriting.

use aws_sdk_dynamodb::types::AttributeValue;
use chrono::NaiveDate;
use serde_json::{Value, json};
use tidegate_domain::calendar::Exclusions;
use tidegate_domain::policy::{PolicyTerms, WaitingRuns};
use tidegate_engine::{Expect, Written};
use tidegate_simulation::world::JobSpec;
use tidegate_store::FORMAT;

use super::stage::{Row, Stage, client, id, of, text};

/// What a newer version put into a row.
const MOON: &str = "moon";
/// The documents in rows.
const DOCUMENTS: [&str; 3] = ["terms", "rules", "excluded"];

/// Changes a row as a newer version might: an attribute of its own, and members of its own in the documents.
fn renew(row: &mut Row) {
    row.insert(MOON.to_owned(), text("full"));
    for name in DOCUMENTS {
        if let Ok(mut document) = serde_json::from_str::<Value>(of(row, name)) {
            document[MOON] = json!({"full": true});
            if name == "terms" {
                let mut flow = document["w"].as_object().cloned().unwrap_or_default();
                flow.insert(MOON.to_owned(), json!([1]));
                document["w"] = flow.into();
            }
            row.insert(name.to_owned(), text(&document.to_string()));
        }
    }
}

/// Whether all of that is still there.
fn is_renewed(row: &Row) -> bool {
    let has_moon = |name: &&str| {
        let document: Value = serde_json::from_str(of(row, name)).unwrap();
        document.get(MOON).is_some() && (**name != *"terms" || document["w"].get(MOON).is_some())
    };
    row.contains_key(MOON) && DOCUMENTS.iter().filter(|name| row.contains_key(**name)).all(has_moon)
}

impl Stage {
    /// Changes rows whose sort key ends with a text; how many they are.
    async fn renew(&self, table: &str, end: &str) -> usize {
        self.change(table, |row| of(row, "sk").ends_with(end), renew).await
    }

    /// Rows whose sort key ends with a text: how many there are, all of them as they were renewed.
    async fn renewed(&self, table: &str, end: &str) -> usize {
        let rows = self.rows(table).await;
        let rows: Vec<&Row> = rows.iter().filter(|row| of(row, "sk").ends_with(end)).collect();
        assert!(rows.iter().all(|row| is_renewed(row)), "{rows:?}");
        rows.len()
    }
}

#[tokio::test]
async fn a_job_and_its_rows_in_the_index_keep_what_they_do_not_know() {
    let stage = Stage::new().await;
    let engine = &stage.world.engine;
    let mut draft = JobSpec::cron("0 9,10 * * *", "Europe/Berlin", &stage.queue).unwrap().into_draft();
    draft.rules.calendars = vec!["holidays".parse().unwrap()];
    engine.jobs().create(&client(), Some(id("daily")), draft.clone()).await.unwrap();
    assert_eq!(stage.renew("jobs", "daily").await, 1);
    let children = stage.renew("launch", "|acme|daily").await;
    assert!(children > 0);
    for paused in [true, false] {
        let written = engine.jobs().pause(&client(), &id("daily"), paused, None).await.unwrap();
        assert!(matches!(written, Written::Replaced(_)), "{written:?}");
        assert_eq!(stage.renewed("jobs", "daily").await, 1);
        assert_eq!(stage.renewed("launch", "|acme|daily").await, children);
    }
    // Sent anew by somebody who knows nothing of it; the optional attribute that went is gone.
    draft.rules.calendars.clear();
    draft.rules.end_at = Some(stage.launch_at);
    let put = async || engine.jobs().replace(&client(), id("daily"), draft.clone(), Expect::Anything).await;
    assert!(matches!(put().await.unwrap(), Written::Replaced(_)));
    assert_eq!(stage.renewed("jobs", "daily").await, 1);
    assert_eq!(stage.renewed("launch", "|acme|daily").await, children);
    assert!(matches!(put().await.unwrap(), Written::Unchanged(_)));
    let job = engine.jobs().get(&client(), &id("daily")).await.unwrap().unwrap();
    assert!(!job.paused && job.rules.calendars.is_empty());
}

/// The rows of two triggers may have one key: what one of them does not say is not left there by the other.
#[tokio::test]
async fn a_changed_trigger_leaves_nothing_of_the_former_one() {
    let stage = Stage::new().await;
    let engine = &stage.world.engine;
    let cron = |text: &str| JobSpec::cron(text, "UTC", &stage.queue).unwrap().into_draft();
    engine.jobs().create(&client(), Some(id("each")), cron("* * * * *")).await.unwrap();
    let rate = tidegate_domain::time::Rate::new(60, stage.launch_at).unwrap();
    let rate = tidegate_domain::job::Trigger::Rate { rate, anchored: true };
    let rate = JobSpec::new(rate, &stage.queue).unwrap().into_draft();
    engine.jobs().replace(&client(), id("each"), rate, Expect::Anything).await.unwrap();
    let rows = stage.rows("launch").await;
    let children: Vec<_> = rows.iter().filter(|row| row.contains_key("rate")).collect();
    assert!(!children.is_empty());
    for row in rows.iter().filter(|row| of(row, "sk").ends_with("|acme|each")) {
        assert!(!row.contains_key("cron") || of(row, "pk").starts_with("OUTBOX"), "{row:?}");
    }
}

#[tokio::test]
async fn a_one_time_job_keeps_what_it_does_not_know() {
    let stage = Stage::new().await;
    let job = stage.create("", stage.spec()).await;
    assert_eq!(stage.renew("launch", job.id.as_str()).await, 1);
    stage.world.engine.jobs().pause(&client(), &job.id, true, None).await.unwrap();
    assert_eq!(stage.renewed("launch", job.id.as_str()).await, 1);
    stage.world.engine.jobs().pause(&client(), &job.id, false, None).await.unwrap();
    stage.emit().await;
    assert_eq!(stage.launch().await, [job.id.as_str()]);
}

#[tokio::test]
async fn a_policy_keeps_what_it_does_not_know() {
    let stage = Stage::new().await;
    let (engine, small) = (&stage.world.engine, "small".parse().unwrap());
    assert_eq!(stage.renew("policies", "policy|small").await, 1);
    let terms = PolicyTerms::new(40, 60).unwrap().with_max_waiting_runs(WaitingRuns::new(9).ok());
    for terms in [terms, PolicyTerms::new(30, 60).unwrap()] {
        let written = engine.policies().replace(&client(), &small, terms, None).await.unwrap();
        assert!(matches!(written, Written::Replaced(_)), "{written:?}");
        assert_eq!(stage.renewed("policies", "policy|small").await, 1);
    }
    let status = engine.queries().policy(&client(), &small).await.unwrap().unwrap();
    assert_eq!(status.policy.terms, PolicyTerms::new(30, 60).unwrap());
}

#[tokio::test]
async fn a_calendar_keeps_what_it_does_not_know() {
    let stage = Stage::new().await;
    let put = async |day| {
        let dates = vec![NaiveDate::from_ymd_opt(2026, 12, day).unwrap()];
        let exclusions = Exclusions { dates, ..Exclusions::default() };
        let id = "holidays".parse().unwrap();
        stage.world.engine.calendars().put(&client(), id, exclusions, Expect::Anything).await.unwrap()
    };
    put(24).await;
    assert_eq!(stage.renew("clients", "holidays").await, 1);
    assert!(matches!(put(25).await, Written::Replaced(_)));
    assert_eq!(stage.renewed("clients", "holidays").await, 1);
    assert!(matches!(put(25).await, Written::Unchanged(_)));
}

/// Every row that throttling writes again and again: the policy, its slot groups, the line, packs and runs.
#[tokio::test]
async fn what_throttling_writes_keeps_what_it_does_not_know() {
    let stage = Stage::new().await;
    stage.throttled("batch", 30, 1).await;
    stage.throttled("single", 1, 2).await;
    stage.emit().await;
    for table in ["policies", "runs"] {
        assert!(stage.change(table, |_| true, renew).await > 0);
    }
    let mut came = stage.launch().await.len();
    let engine = stage.fresh();
    let taken = engine.queries().holders(&client(), &"small".parse().unwrap()).await.unwrap().unwrap();
    assert_eq!((came, taken.len()), (10, 10));
    for _ in 0..8 {
        stage.world.pump().await.unwrap();
        let holders = engine.queries().holders(&client(), &"small".parse().unwrap()).await.unwrap().unwrap();
        let releases = holders.into_iter().map(|holder| {
            tidegate_engine::Release::new(holder.token, tidegate_domain::slots::Outcome::Succeeded)
        });
        engine.tokens().release(&client(), releases.collect()).await.unwrap();
        came += stage.world.consume(&stage.queue).await.unwrap().len();
    }
    stage.launch().await;
    assert_eq!(came, 31);
    for row in stage.rows("runs").await {
        assert!(is_renewed(&row) || row.contains_key("pack") && row.contains_key(MOON), "{row:?}");
    }
    let policies = stage.rows("policies").await;
    assert!(policies.iter().filter(|row| of(row, "sk") == "slots").all(is_renewed));
    let run = stage.world.runs("batch").await.unwrap().pop().unwrap();
    assert_eq!(run.tally.succeeded, 30);
}

#[tokio::test]
async fn a_row_of_a_newer_format_is_not_acted_on() {
    let stage = Stage::new().await;
    stage.create("newer", stage.spec()).await;
    stage.create("sound", stage.spec()).await;
    let newer = |row: &mut Row| drop(row.insert("v".to_owned(), AttributeValue::N((FORMAT + 1).to_string())));
    for table in ["jobs", "launch"] {
        assert!(stage.change(table, |row| of(row, "sk").ends_with("newer"), newer).await > 0);
    }
    let before = stage.rows("jobs").await;
    let refused = stage.world.engine.jobs().pause(&client(), &id("newer"), true, None).await.unwrap_err();
    assert!(refused.to_string().contains("newer version"), "{refused}");
    assert_eq!(stage.rows("jobs").await.len(), before.len());
    stage.emit().await;
    assert_eq!(stage.launch().await, ["sound"]);
    assert_eq!(stage.reasons("newer").await, ["not_emittable"]);
}
