use chrono::{DateTime, Utc};
use std::time::Instant;
use tidegate_domain::job::*;
use tidegate_domain::target::Target;
use tidegate_local::runtime::*;
#[tokio::main]
async fn main() {
    let n: usize = std::env::args().nth(1).unwrap().parse().unwrap();
    let place = match std::env::args().nth(2) {
        Some(d) => Place::Folder(d.into()),
        None => Place::Memory,
    };
    let handlers: usize = std::env::args().nth(3).map_or(8, |h| h.parse().unwrap());
    let t = Instant::now();
    let mut o = Options::new(place);
    o.handlers = handlers;
    let rt = Runtime::start(o).await.unwrap();
    println!("start {:?}", t.elapsed());
    let sqs = rt.embedded().sqs();
    let url = sqs.create_queue().queue_name("inbox").send().await.unwrap().queue_url.unwrap();
    let client: tidegate_domain::ids::ClientId = "acme".parse().unwrap();
    let terms = |count: u64| Terms {
        count: Count::new(count).unwrap(),
        policy: None,
        target: Target::sqs(&url).unwrap(),
        payload: Payload::new("{\"a\":1}".into()).unwrap(),
        history: History::Failures,
        max_attempts: Default::default(),
    };
    // n separate one-time jobs due at one instant
    let lead: i64 = std::env::args().nth(4).map_or(20, |h| h.parse().unwrap());
    let launch_at = DateTime::from_timestamp(Utc::now().timestamp() + lead, 0).unwrap();
    let t = Instant::now();
    let mut set = tokio::task::JoinSet::new();
    for w in 0..8 {
        let (e, c, tm) = (rt.engine().clone(), client.clone(), terms(1));
        let n = n / 8 + usize::from(w < n % 8);
        set.spawn(async move {
            for _ in 0..n {
                e.create_job(&c, None, Trigger::At { launch_at }, tm.clone()).await.unwrap();
            }
        });
    }
    while set.join_next().await.is_some() {}
    println!(
        "created {n} in {:?}, {:.0}/s, {} s before due",
        t.elapsed(),
        n as f64 / t.elapsed().as_secs_f64(),
        (launch_at - Utc::now()).num_milliseconds() as f64 / 1e3
    );
    async fn drain(sqs: &aws_sdk_sqs::Client, url: &str, n: usize) -> usize {
        let mut seen = 0;
        while seen < n {
            let a = sqs
                .get_queue_attributes()
                .queue_url(url)
                .attribute_names(aws_sdk_sqs::types::QueueAttributeName::ApproximateNumberOfMessages)
                .send()
                .await
                .unwrap();
            seen = a.attributes.unwrap().values().next().unwrap().parse().unwrap();
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        seen
    }
    let seen = drain(&sqs, &url, n).await;
    println!(
        "{seen} singles delivered {} ms after they were due",
        (Utc::now() - launch_at).num_milliseconds()
    );
    // one batch of n, due now
    let t = Instant::now();
    let launch_at = DateTime::from_timestamp(Utc::now().timestamp(), 0).unwrap();
    rt.engine().create_job(&client, None, Trigger::At { launch_at }, terms(n as u64)).await.unwrap();
    println!("batch created after {:?}", t.elapsed());
    drain(&sqs, &url, 2 * n).await;
    println!("batch of {n} delivered {:?} after the call", t.elapsed());
    let t = Instant::now();
    rt.stop().await;
    println!("stopped in {:?}", t.elapsed());
}
