//! What came of the events of a run: pages, the events of some statuses, and explanations say what really happened.

use std::collections::{BTreeMap, BTreeSet};

use aws_sdk_dynamodb::types::AttributeValue;
use tidegate_domain::clock::Clock as _;
use tidegate_domain::ids::RunId;
use tidegate_domain::job::HistoryDays;
use tidegate_domain::slots::{Ended, Outcome};
use tidegate_engine::{EventStatus, Release};
use tidegate_simulation::world::JobSpec;
use tidegate_store::Page;
use tidegate_store::events::{HistoryOf, HistoryRow};
use tidegate_store::tables::Table;
use tidegate_testkit::rows;

use super::stage::{Stage, client, terms};

/// Several blocks of event numbers, and the last one in part.
const EVENTS: u32 = 1_900;
/// Four slot groups.
const TOKENS: u32 = 48;

type Statuses = BTreeMap<u32, EventStatus>;

/// What the consumer does with an event.
fn outcome_of(index: u32) -> Option<Outcome> {
    match index {
        // Never released: it expires.
        _ if index % 97 == 5 => None,
        // In a row, and apart.
        _ if (600..750).contains(&index) || index.is_multiple_of(41) => Some(Outcome::Failed),
        _ => Some(Outcome::Succeeded),
    }
}

/// A run whose consumer releases some events as failed, leaves some alone, and goes away before the end; what became of it.
async fn worked() -> (Stage, RunId, Statuses) {
    let stage = Stage::new().await;
    stage.policy("small", terms(TOKENS)).await;
    let job = JobSpec::at(stage.world.clock.now(), &stage.queue).unwrap();
    let job = job.of(EVENTS.into()).unwrap().under("small").unwrap().attempts(2).unwrap();
    stage.put("batch", job, Default::default()).await;
    let mut statuses = Statuses::new();
    while statuses.len() < 1_700 {
        let arrived = stage.wait(7).await;
        let mut releases = Vec::new();
        for event in &arrived {
            let index = event.body.index;
            statuses.insert(index, outcome_of(index).map_or(EventStatus::Expired, EventStatus::from));
            let release = |outcome| Release {
                token: event.token.clone().unwrap(),
                outcome,
                text: (index % 10 == 0).then(|| format!("of {index}")),
            };
            releases.extend(outcome_of(index).map(release));
        }
        for some in releases.chunks(10) {
            stage.world.engine.tokens().release(&client(), some.to_vec()).await.unwrap();
        }
    }
    let run = stage.runs("batch").await.pop().unwrap().id;
    (stage, run, statuses)
}

/// All pages of a list.
async fn listed(
    stage: &Stage,
    run: &RunId,
    statuses: Option<&BTreeSet<EventStatus>>,
) -> Vec<(u32, EventStatus)> {
    let (mut listed, mut after, mut pages) = (Vec::new(), None, 0);
    loop {
        let queries = stage.world.engine.queries();
        let page = match statuses {
            Some(statuses) => queries.events_that_are(&client(), run, statuses, after).await,
            None => queries.events(&client(), run, after).await,
        };
        let Page { rows, next, unreadable } = page.unwrap().unwrap();
        assert!(rows.len() <= 100 && unreadable.is_empty());
        for event in &rows {
            let index = event.id.index();
            let has_said = matches!(event.status, EventStatus::Succeeded | EventStatus::Failed);
            let said = (has_said && index % 10 == 0).then(|| format!("of {index}"));
            assert_eq!(event.text, said, "event {index}");
        }
        listed.extend(rows.iter().map(|event| (event.id.index(), event.status)));
        pages += 1;
        assert!(pages < 100, "the list does not end");
        let Some(next) = next else { return listed };
        let next: u32 = next.parse().unwrap();
        assert!(after.is_none_or(|after| after < next), "page {pages} leads to {next}");
        after = Some(next);
    }
}

/// The lists of each status, and of several, are those events of the whole list.
async fn lists_agree(stage: &Stage, run: &RunId) -> Statuses {
    let all = listed(stage, run, None).await;
    assert_eq!(all.iter().map(|(index, _)| *index).collect::<Vec<_>>(), (0..EVENTS).collect::<Vec<_>>());
    let mut asked: Vec<BTreeSet<EventStatus>> = EventStatus::ALL.map(|status| [status].into()).into();
    asked.push([EventStatus::Failed, EventStatus::Expired, EventStatus::Dead].into());
    asked.push([EventStatus::InFlight, EventStatus::Failed].into());
    asked.push([EventStatus::Succeeded, EventStatus::Failed].into());
    asked.push(EventStatus::ALL.into());
    for statuses in asked {
        let found = listed(stage, run, Some(&statuses)).await;
        let mut those = all.clone();
        those.retain(|(_, status)| statuses.contains(status));
        assert_eq!(found, those, "{statuses:?}");
    }
    all.into_iter().collect()
}

#[tokio::test]
async fn pages_and_lists_by_status_say_what_happened() {
    let (stage, run, happened) = worked().await;
    let mut seen = BTreeSet::new();
    for (index, status) in lists_agree(&stage, &run).await {
        let expected = match happened.get(&index) {
            // Granted, and not seen by its consumer yet.
            None if status == EventStatus::InFlight => status,
            None => EventStatus::Waiting,
            // Until its lease has run out twice.
            Some(EventStatus::Expired) if status == EventStatus::InFlight => status,
            Some(happened) => *happened,
        };
        assert_eq!(status, expected, "event {index}");
        seen.insert(status);
        if index % 53 == 0 {
            let explained = stage.world.engine.queries().explain(&client(), &run.event(index)).await;
            assert_eq!(explained.unwrap().unwrap().record.status, status, "event {index}");
        }
    }
    use EventStatus::{Expired, Failed, InFlight, Succeeded, Waiting};
    assert_eq!(seen, [Waiting, InFlight, Succeeded, Failed, Expired].into());
}

#[tokio::test]
async fn what_is_left_of_a_stopped_run_is_found_as_stopped_and_what_no_queue_took_as_dead() {
    let (stage, run, _) = worked().await;
    // Nobody takes what is delivered from here on.
    stage.world.deployment.sqs.delete_queue().queue_url(&stage.queue).send().await.unwrap();
    for _ in 0..150 {
        stage.world.advance(1);
        stage.world.engine.tick().await.unwrap();
        stage.world.pump().await.unwrap();
    }
    stage.world.engine.jobs().cancel_run(&client(), &run).await.unwrap();
    stage.world.pump().await.unwrap();
    let statuses: BTreeSet<EventStatus> = lists_agree(&stage, &run).await.into_values().collect();
    assert!(statuses.contains(&EventStatus::Dead), "{statuses:?}");
}

/// The rows with outcomes as they were before they lay by blocks: one for each compaction, whatever events it has.
async fn as_before(stage: &Stage) -> usize {
    let db = stage.world.embedded.dynamodb();
    let (mut kept, mut compactions) = (Vec::new(), BTreeMap::new());
    for row in rows::all(&db, Table::Events).await.unwrap() {
        let sort_key = row["sk"].as_s().unwrap().clone();
        let place = sort_key.strip_prefix("os").or_else(|| sort_key.strip_prefix("of"));
        let Some((_, of_group)) = place.and_then(|place| place.split_once('.')) else {
            kept.push(row);
            continue;
        };
        let packed = row["packed"].as_s().unwrap().clone();
        let key = format!("o{of_group}");
        let before =
            compactions.entry((row["pk"].as_s().unwrap().clone(), key)).or_insert((row, String::new()));
        before.1.push_str(&packed);
    }
    let number = compactions.len();
    for ((_, sort_key), (mut row, packed)) in compactions {
        row.insert("sk".to_owned(), AttributeValue::S(sort_key));
        row.insert("packed".to_owned(), AttributeValue::S(packed));
        kept.push(row);
    }
    rows::replace_all(&db, Table::Events, kept).await.unwrap();
    number
}

#[tokio::test]
async fn rows_of_earlier_versions_say_the_same() {
    let (stage, run, _) = worked().await;
    let before = lists_agree(&stage, &run).await;
    assert!(as_before(&stage).await > 10);
    assert_eq!(lists_agree(&stage, &run).await, before);
    // What goes on from there is kept in the new way, beside them.
    for _ in 0..20 {
        let arrived = stage.wait(7).await;
        let releases: Vec<Release> =
            arrived.iter().map(|event| Release::new(event.token.clone().unwrap(), Outcome::Dead)).collect();
        for some in releases.chunks(10) {
            stage.world.engine.tokens().release(&client(), some.to_vec()).await.unwrap();
        }
    }
    let all = lists_agree(&stage, &run).await;
    assert!(all.values().filter(|status| **status == EventStatus::Dead).count() > 100, "{all:?}");
}

#[tokio::test]
async fn a_compaction_that_is_kept_twice_or_in_part_changes_nothing() {
    let stage = Stage::new().await;
    let run: RunId = "batch.1.1795262400".parse().unwrap();
    let (store, of) = (stage.world.engine.store(), HistoryOf::Run(run));
    let ended = |index: u32| Ended {
        index,
        outcome: if index.is_multiple_of(3) { Outcome::Failed } else { Outcome::Succeeded },
        attempts: 1,
    };
    let ends: Vec<Ended> = (0..40).map(|number| ended(number * 77)).collect();
    let now = stage.world.clock.now();
    store.keep_outcomes(&client(), &of, (3, 9), &ends, (now, HistoryDays::DEFAULT)).await.unwrap();
    let db = stage.world.embedded.dynamodb();
    let mut kept = rows::all(&db, Table::Events).await.unwrap();
    let key = |row: &rows::Row| row["sk"].as_s().unwrap().clone();
    kept.sort_by_key(key);
    // Whoever wrote them died after the first few.
    rows::replace_all(&db, Table::Events, kept[..2].to_vec()).await.unwrap();
    for _ in 0..2 {
        store.keep_outcomes(&client(), &of, (3, 9), &ends, (now, HistoryDays::DEFAULT)).await.unwrap();
        let mut again = rows::all(&db, Table::Events).await.unwrap();
        again.sort_by_key(key);
        assert_eq!(again, kept);
    }
    let mut read: Vec<Ended> = Vec::new();
    for row in store.history(&client(), &of, None).await.unwrap().rows {
        let HistoryRow::Packed(ends) = row else { panic!("{row:?}") };
        read.extend(ends);
    }
    read.sort_by_key(|ended| ended.index);
    assert_eq!(read, ends);
}
