//! What local mode knows of the URLs of queues: only those of its own SQS lead anywhere, and how a queue there is made.
//!
//! The embedded SQS takes a queue by its name alone, so that stored URLs outlive a change of port. A job that is written
//! now must carry the URL under which its consumer finds the queue.

use tidegate_api::QueueHint;
use tidegate_embedded::place_of_queues;
use tidegate_runtime::{BadQueueName, ConsumerQueue};

/// Says what a queue URL lacks, for the SQS at `sqs_url`.
pub(super) fn hints(sqs_url: &str) -> impl Fn(&str) -> QueueHint + Send + Sync + 'static {
    let sqs_url = sqs_url.to_owned();
    move |queue_url| hint(&sqs_url, queue_url)
}

fn hint(sqs_url: &str, queue_url: &str) -> QueueHint {
    let name = queue_url.rsplit('/').next().unwrap_or_default();
    let place = place_of_queues(sqs_url);
    let queue = match name.parse::<ConsumerQueue>() {
        Ok(queue) => queue,
        Err(own @ BadQueueName::Own(_)) => return QueueHint::WrongUrl(own.to_string()),
        Err(BadQueueName::Form(_)) => {
            let message = format!("'{queue_url}' is not the URL of a queue here; write {place}/NAME");
            return QueueHint::WrongUrl(message);
        }
    };
    let right = format!("{place}/{name}");
    let is_right = |origin: &str| queue_url.strip_prefix(origin) == right.strip_prefix(sqs_url);
    if !is_right(sqs_url) && !is_right(&sqs_url.replace("127.0.0.1", "localhost")) {
        let message = format!(
            "'{queue_url}' is not served here: the queues of this tidegate local lie under {place}; write '{right}'"
        );
        return QueueHint::WrongUrl(message);
    }
    let fifo = if queue.is_fifo() { " --attributes FifoQueue=true" } else { "" };
    QueueHint::HowToCreate(format!(
        "start tidegate local with --queue {name}, or: \
         aws sqs create-queue --endpoint-url {sqs_url} --queue-name {name}{fifo}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SQS: &str = "http://127.0.0.1:9324";

    #[test]
    fn a_missing_queue_comes_with_the_command_that_creates_it() {
        for origin in [SQS, "http://localhost:9324"] {
            let QueueHint::HowToCreate(fix) = hint(SQS, &format!("{origin}/000000000000/work")) else {
                panic!("{origin} should be right")
            };
            assert_eq!(
                fix,
                "start tidegate local with --queue work, or: \
                 aws sqs create-queue --endpoint-url http://127.0.0.1:9324 --queue-name work"
            );
        }
        let fifo = hint(SQS, "http://127.0.0.1:9324/000000000000/work.fifo");
        assert!(
            matches!(fifo, QueueHint::HowToCreate(fix) if fix.ends_with("work.fifo --attributes FifoQueue=true"))
        );
    }

    #[test]
    fn a_url_of_another_place_is_answered_with_the_right_one() {
        for wrong in [
            "http://127.0.0.1:4566/000000000000/work",
            "http://127.0.0.1:93240/000000000000/work",
            "https://127.0.0.1:9324/000000000000/work",
            "http://127.0.0.1/000000000000/work",
            "http://127.0.0.1:9324/123456789012/work",
            "http://127.0.0.1:9324/000000000000/x/work",
            "http://127.0.0.1:9324//work",
            "https://sqs.eu-central-1.amazonaws.com/123456789012/work",
        ] {
            let QueueHint::WrongUrl(message) = hint(SQS, wrong) else { panic!("{wrong} should be wrong") };
            assert!(message.ends_with("write 'http://127.0.0.1:9324/000000000000/work'"), "{message}");
        }
        let own = hint(SQS, "http://127.0.0.1:9324/000000000000/tidegate-dispatch");
        assert!(
            matches!(own, QueueHint::WrongUrl(message) if message.contains("a queue of Tidegate itself"))
        );
        let nameless = hint(SQS, "http://127.0.0.1:9324/000000000000/");
        assert!(matches!(nameless, QueueHint::WrongUrl(message) if message.ends_with("000000000000/NAME")));
    }
}
