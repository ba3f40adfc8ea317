//! A world whose rows are changed behind the engine's back.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;
use chrono::{DateTime, Duration, Utc};
use tidegate_domain::clock::Clock as _;
use tidegate_domain::flow::{Flow, Priority};
use tidegate_domain::ids::{ClientId, JobId};
use tidegate_domain::job::Job;
use tidegate_engine::{Engine, Written};
use tidegate_simulation::World;
use tidegate_simulation::gate::Gate;
use tidegate_simulation::world::{CLIENT, JobSpec};
use tidegate_testkit::PREFIX;

pub(crate) type Row = HashMap<String, AttributeValue>;

pub(crate) struct Stage {
    pub(crate) world: World,
    pub(crate) queue: String,
    pub(crate) launch_at: DateTime<Utc>,
}

pub(crate) fn client() -> ClientId {
    CLIENT.parse().unwrap()
}

pub(crate) fn id(job: &str) -> JobId {
    job.parse().unwrap()
}

pub(crate) fn text(text: &str) -> AttributeValue {
    AttributeValue::S(text.to_owned())
}

/// One text of a row, such as its `sk`.
pub(crate) fn of<'r>(row: &'r Row, name: &str) -> &'r str {
    row.get(name).and_then(|value| value.as_s().ok()).map_or("", String::as_str)
}

impl Stage {
    /// A policy of 10 tokens, and jobs that will be due in half an hour.
    pub(crate) async fn new() -> Self {
        let mut world = World::new().await.unwrap();
        // Also those that are few wait in packs.
        world.engine = world.engine.with_few(0);
        let queue = world.queue("jobs").await.unwrap();
        world.policy("small", 10, 600).await.unwrap();
        world.engine.tick().await.unwrap();
        let launch_at = world.clock.now() + Duration::minutes(30);
        Self { world, queue, launch_at }
    }

    /// An engine that remembers nothing.
    pub(crate) fn fresh(&self) -> Engine {
        self.world.process(&std::sync::Arc::new(Gate::default())).unwrap()
    }

    pub(crate) fn spec(&self) -> JobSpec {
        JobSpec::at(self.launch_at, &self.queue).unwrap()
    }

    pub(crate) async fn create(&self, name: &str, spec: JobSpec) -> Job {
        let id = (!name.is_empty()).then(|| id(name));
        match self.world.engine.jobs().create(&client(), id, spec.into_draft()).await.unwrap() {
            Written::Created(job) => job,
            other => panic!("{other:?}"),
        }
    }

    /// A job of `count` events under the policy. Those of priority 0 come first.
    pub(crate) async fn throttled(&self, name: &str, count: u64, priority: u64) {
        let mut draft = self.spec().of(count).unwrap().under("small").unwrap().into_draft();
        draft.terms.flow = Flow { priority: Priority::new(priority).unwrap(), ..Flow::default() };
        self.world.engine.jobs().create(&client(), Some(id(name)), draft).await.unwrap();
    }

    /// The minute in which the jobs join their line.
    pub(crate) async fn emit(&self) {
        self.world.advance(29 * 60);
        assert!(self.world.engine.tick().await.unwrap().won);
    }

    /// The minute in which they are due, by an engine that remembers nothing, and some more.
    pub(crate) async fn launch(&self) -> Vec<String> {
        let engine = self.fresh();
        for _ in 0..5 {
            self.world.advance(60);
            engine.tick().await.unwrap();
            for message in self.world.receive_dispatched().await.unwrap() {
                engine.handle(message.body().unwrap(), 1).await;
                self.world.delete_dispatched(&[message]).await.unwrap();
            }
        }
        let came = self.world.consume(&self.queue).await.unwrap();
        let mut jobs: Vec<String> = came.into_iter().map(|event| event.body.job_id).collect();
        jobs.sort();
        jobs
    }

    fn table(name: &str) -> String {
        format!("{PREFIX}-{name}")
    }

    pub(crate) async fn rows(&self, table: &str) -> Vec<Row> {
        let scan = self.world.embedded.dynamodb().scan().table_name(Self::table(table));
        scan.send().await.unwrap().items.unwrap()
    }

    pub(crate) async fn put(&self, table: &str, row: Row) {
        let put = self.world.embedded.dynamodb().put_item().table_name(Self::table(table));
        put.set_item(Some(row)).send().await.unwrap();
    }

    /// Changes the rows of a table for which `is_meant` holds; how many they are.
    pub(crate) async fn change(
        &self,
        table: &str,
        is_meant: impl Fn(&Row) -> bool,
        change: impl Fn(&mut Row),
    ) -> usize {
        let mut changed = 0;
        for mut row in self.rows(table).await {
            if is_meant(&row) {
                change(&mut row);
                self.put(table, row).await;
                changed += 1;
            }
        }
        changed
    }

    /// Makes the rows of a table unreadable whose sort key holds a text.
    pub(crate) async fn spoil(&self, table: &str, part_of_key: &str, attribute: &str) {
        let is_meant = |row: &Row| of(row, "sk").contains(part_of_key);
        let spoil = |row: &mut Row| drop(row.insert(attribute.to_owned(), text("written by nobody")));
        assert!(self.change(table, is_meant, spoil).await > 0, "{table} {part_of_key}");
    }

    /// Why the runs of a job are not delivered, by what is recorded of it.
    pub(crate) async fn reasons(&self, job: &str) -> Vec<String> {
        self.world.runs(job).await.unwrap().into_iter().filter_map(|run| run.stopped).collect()
    }
}
