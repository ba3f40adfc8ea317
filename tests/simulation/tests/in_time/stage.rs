//! A world with a queue and a policy, in which things lie in many rows.

use aws_sdk_dynamodb::types::AttributeValue;
use chrono::{DateTime, Duration, Utc};
use serde_json::Value;
use tidegate_domain::clock::Clock as _;
use tidegate_domain::flow::Flow;
use tidegate_domain::ids::ClientId;
use tidegate_domain::job::Job;
use tidegate_engine::message::Message;
use tidegate_engine::{Load, Written};
use tidegate_simulation::World;
use tidegate_simulation::world::{CLIENT, JobSpec};
use tidegate_testkit::PREFIX;

/// The name of the policy.
pub const POLICY: &str = "small";

pub struct Stage {
    pub world: World,
    pub queue: String,
}

pub fn client() -> ClientId {
    CLIENT.parse().unwrap()
}

/// A message that has the policy looked after as a whole.
pub fn wake() -> String {
    Message::Wake { client: CLIENT.to_owned(), policy: POLICY.to_owned(), due_s: None }.encode()
}

/// Whether a request names a table.
pub fn is_of(body: &Value, table: &str) -> bool {
    body["TableName"] == format!("{PREFIX}-{table}")
}

impl Stage {
    /// With a policy of so many tokens.
    pub async fn of(tokens: u32) -> Self {
        let world = World::new().await.unwrap();
        let queue = world.queue("jobs").await.unwrap();
        world.engine.tick().await.unwrap();
        world.policy(POLICY, tokens, 3_600).await.unwrap();
        Self { world, queue }
    }

    /// The same, and the policy is paused.
    pub async fn paused() -> Self {
        let stage = Self::of(1).await;
        let id = POLICY.parse().unwrap();
        stage.world.engine.policies().pause(&client(), &id, true, None).await.unwrap();
        stage
    }

    pub fn now(&self) -> DateTime<Utc> {
        self.world.clock.now()
    }

    /// A job under the policy, for so many seconds from now.
    pub fn throttled(&self, seconds: i64, count: u64) -> JobSpec {
        let at = self.now() + Duration::seconds(seconds);
        JobSpec::at(at, &self.queue).unwrap().of(count).unwrap().under(POLICY).unwrap()
    }

    pub async fn put(&self, id: &str, spec: JobSpec, flow: Flow) -> Job {
        let mut draft = spec.into_draft();
        draft.terms.flow = flow;
        let id = Some(id.parse().unwrap());
        match self.world.engine.jobs().create(&client(), id, draft).await.unwrap() {
            Written::Created(job) => job,
            other => panic!("{other:?}"),
        }
    }

    /// Runs of two events that wait in the line.
    pub async fn put_runs(&self, runs: usize, flow: &Flow) {
        for number in 0..runs {
            self.put(&format!("job-{number}"), self.throttled(0, 2), flow.clone()).await;
        }
    }

    pub async fn load(&self) -> Load {
        let policy = POLICY.parse().unwrap();
        self.world.engine.queries().policy(&client(), &policy).await.unwrap().unwrap().load
    }

    /// Changes rows of a table; how many those were.
    pub async fn change(
        &self,
        table: &str,
        is_meant: impl Fn(&str, &str) -> bool,
        attribute: &str,
        value: AttributeValue,
    ) -> usize {
        let (dynamodb, table) = (self.world.embedded.dynamodb(), format!("{PREFIX}-{table}"));
        let rows = dynamodb.scan().table_name(&table).send().await.unwrap().items.unwrap();
        let mut changed = 0;
        for mut row in rows {
            if is_meant(row["pk"].as_s().unwrap(), row["sk"].as_s().unwrap()) {
                row.insert(attribute.to_owned(), value.clone());
                dynamodb.put_item().table_name(&table).set_item(Some(row)).send().await.unwrap();
                changed += 1;
            }
        }
        changed
    }
}
