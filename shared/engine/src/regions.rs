//! Clients for the queues of consumers: one for each region that a queue URL names, since a request goes to the region of its
//! client and is signed for it.
//!
//! Kept and bounded: there are a few dozen regions, and a URL that names none is looked for at home.

use std::collections::BTreeMap;
use std::sync::Mutex;

use aws_sdk_sqs::Client;
use aws_sdk_sqs::config::Region;
use tidegate_calls::Way;
use tidegate_domain::arn::{is_region, partition_of};

use crate::contain::locked;

/// Clients that are kept beside the one at home: more than there are regions.
const MOST_KEPT: usize = 64;

/// Clients of SQS by region. They share what they send requests with.
pub(crate) struct Regions {
    home: Client,
    way: Way,
    others: Mutex<BTreeMap<String, Client>>,
}

impl Regions {
    /// The regions as they are reached from that of `home`, that way.
    pub(crate) fn new(home: Client, way: Way) -> Self {
        Self { home, way, others: Mutex::default() }
    }

    /// Which way calls to queues go.
    pub(crate) fn way(&self) -> &Way {
        &self.way
    }

    /// The client for a queue. Where an endpoint is set, as for emulators, each goes to it.
    pub(crate) fn client_of(&self, queue_url: &str) -> Client {
        let home = self.home.config().region().map(Region::as_ref);
        let Some(region) = region_of(queue_url).filter(|region| home.is_some_and(|home| home != *region))
        else {
            return self.home.clone();
        };
        let mut others = locked(&self.others);
        if let Some(known) = others.get(region) {
            return known.clone();
        }
        let config = self.home.config().to_builder().region(Region::new(region.to_owned())).build();
        let client = Client::from_conf(config);
        if others.len() < MOST_KEPT {
            others.insert(region.to_owned(), client.clone());
        }
        client
    }

    /// The partition of AWS that a queue is in, when it is another than ours: no role of ours is known there.
    pub(crate) fn other_partition(&self, queue_url: &str) -> Option<&'static str> {
        let home = partition_of(self.home.config().region()?.as_ref());
        region_of(queue_url).map(partition_of).filter(|partition| *partition != home)
    }
}

/// The region that the URL of a queue names. `None` where its host is none of AWS.
fn region_of(queue_url: &str) -> Option<&str> {
    let (_, rest) = queue_url.split_once("://")?;
    let host = rest.split(['/', ':']).next()?;
    let labels: Vec<&str> = host.split('.').collect();
    let region = match labels.as_slice() {
        ["queue", "amazonaws", "com"] => "us-east-1",
        ["sqs" | "sqs-fips", region, "amazonaws", "com"]
        | ["sqs" | "sqs-fips", region, "amazonaws", "com", "cn"]
        | ["sqs" | "sqs-fips", region, "api", "aws"]
        | [region, "queue", "amazonaws", "com"]
        | [_, "sqs", region, "vpce", "amazonaws", "com"] => region,
        _ => return None,
    };
    is_region(region).then_some(region)
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use aws_sdk_sqs::config::endpoint::DefaultResolver;
    use aws_smithy_runtime_api::client::http::HttpConnector as _;
    use chrono::DateTime;
    use tidegate_domain::clock::ManualClock;
    use tidegate_embedded::{Embedded, around};

    use super::*;

    #[test]
    fn the_region_is_in_the_host() {
        for (url, region) in [
            ("https://sqs.eu-west-1.amazonaws.com/123456789012/jobs", Some("eu-west-1")),
            ("https://eu-west-1.queue.amazonaws.com/123456789012/jobs", Some("eu-west-1")),
            ("https://queue.amazonaws.com/123456789012/jobs", Some("us-east-1")),
            ("https://sqs-fips.us-gov-west-1.amazonaws.com/123456789012/jobs", Some("us-gov-west-1")),
            ("https://sqs.cn-north-1.amazonaws.com.cn/123456789012/jobs", Some("cn-north-1")),
            ("https://sqs.ap-southeast-2.api.aws/123456789012/jobs", Some("ap-southeast-2")),
            ("https://vpce-0a.sqs.eu-west-1.vpce.amazonaws.com/123456789012/jobs", Some("eu-west-1")),
            ("https://sqs.amazonaws.com/123456789012/jobs", None),
            ("https://sqs.nowhere.amazonaws.com/123456789012/jobs", None),
            ("https://sqs.eu-west-1.example.com/123456789012/jobs", None),
            ("http://127.0.0.1:9324/000000000000/jobs", None),
            ("http://sqs.us-east-1.localhost.localstack.cloud:4566/000000000000/jobs", None),
        ] {
            assert_eq!(region_of(url), region, "{url}");
        }
    }

    /// An SQS in the process whose clients sign for and go to regions, and the hosts that they went to.
    fn embedded_sqs() -> (Client, Arc<Mutex<Vec<String>>>) {
        let clock = ManualClock::new(DateTime::from_timestamp(1_763_725_000, 0).unwrap());
        let inside = Embedded::in_memory(Arc::new(clock)).unwrap().sqs();
        let hosts = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&hosts);
        let http = around(inside.config().http_client().unwrap(), move |inner, request| {
            let host = request.uri().split('/').nth(2).unwrap_or_default().to_owned();
            seen.lock().unwrap().push(host);
            inner.call(request)
        });
        let config = inside.config().to_builder().http_client(http);
        (Client::from_conf(config.endpoint_resolver(DefaultResolver::new()).build()), hosts)
    }

    #[tokio::test]
    async fn a_request_goes_to_the_region_of_its_queue() {
        let (home, hosts) = embedded_sqs();
        home.create_queue().queue_name("jobs").send().await.unwrap();
        let regions = Regions::new(home, Way::default());
        for region in ["eu-west-1", "us-east-1", "eu-west-1"] {
            let url = format!("https://sqs.{region}.amazonaws.com/000000000000/jobs");
            let send = regions.client_of(&url).send_message().queue_url(url).message_body("x");
            send.send().await.unwrap();
        }
        let hosts: Vec<String> = hosts.lock().unwrap().clone();
        let host = |region: &str| format!("sqs.{region}.amazonaws.com");
        assert_eq!(hosts, ["us-east-1", "eu-west-1", "us-east-1", "eu-west-1"].map(host));
        assert_eq!(regions.others.lock().unwrap().len(), 1);
    }

    #[tokio::test]
    async fn clients_of_regions_are_bounded() {
        let regions = Regions::new(embedded_sqs().0, Way::default());
        for number in 0..200_u8 {
            let (a, b) = (char::from(b'a' + number % 26), char::from(b'a' + number / 26));
            let url = format!("https://sqs.{a}{b}-west-1.amazonaws.com/000000000000/jobs");
            let region = regions.client_of(&url).config().region().unwrap().to_string();
            assert_eq!(region, format!("{a}{b}-west-1"));
        }
        assert_eq!(regions.others.lock().unwrap().len(), MOST_KEPT);
    }

    #[tokio::test]
    async fn another_partition_is_out_of_reach() {
        let regions = Regions::new(embedded_sqs().0, Way::default());
        let other = |url| regions.other_partition(url);
        assert_eq!(other("https://sqs.cn-north-1.amazonaws.com.cn/123456789012/jobs"), Some("aws-cn"));
        assert_eq!(other("https://sqs.us-gov-west-1.amazonaws.com/123456789012/jobs"), Some("aws-us-gov"));
        assert_eq!(other("https://sqs.eu-west-1.amazonaws.com/123456789012/jobs"), None);
        assert_eq!(other("http://127.0.0.1:9324/000000000000/jobs"), None);
    }
}
