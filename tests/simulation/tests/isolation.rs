//! Nothing that one client stores, sends or answers stops another (I9): each case is one that did, and beside it a
//! neighbour's job of every minute stays on time.

use std::collections::BTreeSet;

use chrono::{DateTime, Duration, Utc};
use serde_json::json;
use tidegate_domain::clock::Clock as _;
use tidegate_domain::ids::{ClientId, JobId};
use tidegate_domain::job::{Count, Payload};
use tidegate_domain::rules::Rules;
use tidegate_embedded::{Call, Fault, FaultPlan};
use tidegate_engine::{JobDraft, Written, panics_contained};
use tidegate_simulation::World;
use tidegate_simulation::world::{JobSpec, Received};

/// The neighbour's job.
const NEIGHBOUR_JOB: &str = "each-minute";

struct Town {
    world: World,
    neighbours: String,
    attackers: String,
    attacker: ClientId,
}

impl Town {
    async fn new() -> Self {
        let world = World::new().await.unwrap();
        let (neighbours, attackers) =
            (world.queue("neighbours").await.unwrap(), world.queue("attackers").await.unwrap());
        let every_minute = JobSpec::cron("* * * * *", "Europe/Berlin", &neighbours).unwrap();
        world.create(every_minute.named(NEIGHBOUR_JOB)).await.unwrap();
        world.engine.tick().await.unwrap();
        let town = Self { world, neighbours, attackers, attacker: "mallory".parse().unwrap() };
        town.minutes(5).await;
        town
    }

    /// Lets minutes pass. The neighbour's events of each arrive in it, on time.
    async fn minutes(&self, minutes: usize) {
        for _ in 0..minutes {
            self.world.advance(60);
            self.world.engine.tick().await.unwrap();
            self.world.pump().await.unwrap();
            let now = self.world.clock.now();
            let came = self.world.consume(&self.neighbours).await.unwrap();
            let launches: Vec<String> = came.into_iter().map(|event| event.body.launch_at).collect();
            assert!(launches.contains(&now.format("%Y-%m-%dT%H:%M:%SZ").to_string()), "{now}: {launches:?}");
        }
    }

    /// A job of the attacker that is due in some minutes.
    async fn attack(&self, id: &str, count: u64, payload: Payload) -> JobId {
        let mut draft = self.draft(&self.attackers);
        draft.terms.count = Count::new(count).unwrap();
        draft.terms.payload = payload;
        self.store(Some(id), draft).await
    }

    fn draft(&self, queue: &str) -> JobDraft {
        JobSpec::at(self.due_at(), queue).unwrap().into_draft()
    }

    fn due_at(&self) -> DateTime<Utc> {
        self.world.clock.now() + Duration::seconds(600)
    }

    async fn store(&self, id: Option<&str>, draft: JobDraft) -> JobId {
        let id = id.filter(|id| !id.is_empty()).map(|id| id.parse().unwrap());
        match self.world.engine.jobs().create(&self.attacker, id, draft).await.unwrap() {
            Written::Created(job) => job.id,
            other => panic!("{other:?}"),
        }
    }

    async fn reasons(&self, job: &JobId) -> Vec<Option<String>> {
        let runs = self.world.engine.store().runs(&self.attacker, job, None).await.unwrap();
        runs.rows.into_iter().map(|run| run.stopped).collect()
    }

    async fn attacked(&self) -> Vec<Received> {
        self.world.consume(&self.attackers).await.unwrap()
    }
}

/// C2 and B2: ten chunks of such events are more than one call to SQS takes.
#[tokio::test]
async fn events_that_are_large_once_they_are_encoded_fill_several_calls() {
    let town = Town::new().await;
    let quotes = json!({"x": "\"".repeat(32_760)}).to_string();
    // With a generated id the payload rides in the row, and in each chunk.
    town.attack("", 1_000, Payload::new(quotes).unwrap()).await;
    let backslashes = json!("\\".repeat(32_000)).to_string();
    for _ in 0..100 {
        town.attack("", 1, Payload::new(backslashes.clone()).unwrap()).await;
    }
    town.minutes(12).await;
    assert_eq!(town.attacked().await.len(), 1_100);
}

/// Two characters are text to JSON and none to SQS.
#[tokio::test]
async fn characters_that_sqs_refuses_travel_as_escapes() {
    let town = Town::new().await;
    let odd = "\"\u{fffe} and \u{ffff}\"";
    town.attack("odd", 2, Payload::new(odd.to_owned()).unwrap()).await;
    town.minutes(12).await;
    let came = town.attacked().await;
    assert_eq!(came.len(), 2);
    for event in came {
        let payload: String = serde_json::from_str(event.body.payload.get()).unwrap();
        assert_eq!(payload, "\u{fffe} and \u{ffff}");
    }
}

/// H2: whatever spelling came past the API, an event reaches no queue of ours.
#[tokio::test]
async fn no_event_is_delivered_to_a_queue_of_ours() {
    let town = Town::new().await;
    let own = town.world.deployment.dispatch_url().to_owned();
    let mut draft = town.draft(&own);
    draft.terms.payload = Payload::new(json!({"v": 1, "scan": {"part": "x"}}).to_string()).unwrap();
    let job = town.store(Some("inside"), draft).await;
    town.minutes(12).await;
    let runs = town.world.engine.store().runs(&town.attacker, &job, None).await.unwrap();
    let tally = runs.rows.first().unwrap().tally;
    assert_eq!((tally.delivered, tally.dead), (0, 1));
}

/// H3: a FIFO queue takes the events of two clients whose jobs have one name and one instant.
#[tokio::test]
async fn two_clients_on_one_fifo_queue_lose_nothing() {
    let world = World::new().await.unwrap();
    let sqs = world.embedded.sqs();
    let fifo = aws_sdk_sqs::types::QueueAttributeName::FifoQueue;
    let queue = sqs.create_queue().queue_name("shared.fifo").attributes(fifo, "true").send().await.unwrap();
    let queue = queue.queue_url.unwrap();
    let due_at = world.clock.now() + Duration::seconds(600);
    world.engine.tick().await.unwrap();
    for client in ["acme", "mallory"] {
        let draft = JobSpec::at(due_at, &queue).unwrap().into_draft();
        let client = client.parse().unwrap();
        world.engine.jobs().create(&client, Some("nightly".parse().unwrap()), draft).await.unwrap();
    }
    for _ in 0..11 {
        world.advance(60);
        world.engine.tick().await.unwrap();
        world.pump().await.unwrap();
    }
    let mut clients: Vec<String> =
        world.consume(&queue).await.unwrap().into_iter().map(|event| event.body.client_id).collect();
    clients.sort();
    assert_eq!(clients, ["acme", "mallory"]);
}

/// A row that nobody can read is the fault of whoever wrote it, and the job that needs it says so.
#[tokio::test]
async fn a_launch_that_cannot_be_judged_is_set_aside_under_its_job() {
    let town = Town::new().await;
    let mut draft = town.draft(&town.attackers);
    draft.rules = Rules { calendars: vec!["broken".parse().unwrap()], ..Rules::default() };
    let job = town.store(Some("needs-a-calendar"), draft).await;
    let sound = town.attack("needs-none", 1, Payload::new("1".to_owned()).unwrap()).await;
    let table = format!("{}-clients", tidegate_testkit::PREFIX);
    let text = |text: &str| aws_sdk_dynamodb::types::AttributeValue::S(text.to_owned());
    let row = town.world.embedded.dynamodb().put_item().table_name(table);
    let row =
        row.item("pk", text("calendar|mallory")).item("sk", text("broken")).item("dates", text("no list"));
    row.send().await.unwrap();
    town.minutes(12).await;
    assert_eq!(town.reasons(&job).await, [Some("not_emittable".to_owned())]);
    assert_eq!(town.reasons(&sound).await, [None]);
    assert_eq!(town.attacked().await.len(), 1);
}

/// Panics when a message goes to one queue: stands for any fault of ours that one event brings about.
struct PanicsAt(&'static str);

impl FaultPlan for PanicsAt {
    fn on_request(&self, call: &Call) -> Fault {
        assert!(
            !(call.operation == "SendMessageBatch" && call.resource().ends_with(self.0)),
            "a fault of ours"
        );
        Fault::None
    }
}

/// A chunk holds events of several jobs: the one at fault is recorded as dead, its companions are delivered.
#[tokio::test]
async fn an_event_that_makes_us_panic_stands_alone() {
    let town = Town::new().await;
    town.world.queue("poison").await.unwrap();
    let poison = town.attackers.replace("attackers", "poison");
    let mut jobs = Vec::new();
    for (id, queue) in [("a", &town.attackers), ("b", &poison), ("c", &town.attackers)] {
        jobs.push(town.store(Some(id), town.draft(queue)).await);
    }
    let mut batch = town.draft(&poison);
    batch.terms.count = Count::new(3).unwrap();
    let batch = town.store(Some("batch"), batch).await;
    town.world.embedded.inject(PanicsAt("poison"));
    town.minutes(12).await;
    assert!(panics_contained() > 0);
    // What shared its chunk with it may come twice: nobody knows how far the panic let the others come.
    let received: BTreeSet<String> =
        town.attacked().await.into_iter().map(|event| event.body.event_id).collect();
    assert_eq!(received.len(), 2);
    let store = town.world.engine.store();
    let tally = async |job: &JobId| {
        let runs = store.runs(&town.attacker, job, None).await.unwrap();
        runs.rows.first().map(|run| (run.tally.delivered, run.tally.dead)).unwrap()
    };
    assert_eq!(
        [tally(&jobs[0]).await, tally(&jobs[1]).await, tally(&jobs[2]).await],
        [(1, 0), (0, 1), (1, 0)]
    );
    let run = store.runs(&town.attacker, &batch, None).await.unwrap().rows.remove(0).id;
    let detail = town.world.engine.queries().run_detail(&town.attacker, &run).await.unwrap().unwrap();
    assert_eq!(detail.summary.tally.dead, 3);
}
