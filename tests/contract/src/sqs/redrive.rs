//! Dead letters.

use aws_sdk_sqs::types::{MessageSystemAttributeName as System, QueueAttributeName as Name};

use crate::bench::{Bench, Outcome, refusal};

fn policy(arn: &str, count: u32) -> String {
    format!(r#"{{"deadLetterTargetArn":"{arn}","maxReceiveCount":"{count}"}}"#)
}

/// A queue and its dead-letter queue, both with a visibility timeout of one second.
async fn pair(
    bench: &Bench,
    suffix: &str,
    count: u32,
) -> Result<(String, String), Box<dyn std::error::Error + Send + Sync>> {
    let dead = bench.queue(&format!("dead{suffix}"), &[]).await?;
    let arn = bench.attribute(&dead, Name::QueueArn).await?.unwrap_or_default();
    let attributes = [(Name::VisibilityTimeout, "1"), (Name::RedrivePolicy, &policy(&arn, count))];
    Ok((bench.queue(&format!("source{suffix}"), &attributes).await?, dead))
}

/// Received `maxReceiveCount` times, then moved instead of received.
pub async fn a_message_that_keeps_failing_is_moved(bench: &Bench) -> Outcome {
    let (source, dead) = pair(bench, "", 2).await?;
    let id = bench.send(&source, "poison").await?;
    for _ in 0..2 {
        assert_eq!(bench.bodies(&source).await?, ["poison"]);
        bench.passage.pass(1).await;
    }
    assert_eq!(bench.bodies(&source).await?, Vec::<String>::new());
    let received = bench.client.receive_message().queue_url(&dead).wait_time_seconds(1).send().await?;
    let message = received.messages().first().ok_or("the message should be in the dead-letter queue")?;
    assert_eq!((message.body(), message.message_id()), (Some("poison"), Some(id.as_str())));
    Ok(())
}

/// `DeadLetterQueueSourceArn`.
pub async fn a_dead_letter_names_its_source(bench: &Bench) -> Outcome {
    let (source, dead) = pair(bench, "", 1).await?;
    bench.send(&source, "poison").await?;
    bench.receive_one(&source).await?;
    bench.passage.pass(1).await;
    assert_eq!(bench.bodies(&source).await?, Vec::<String>::new());
    let receive = bench.client.receive_message().queue_url(&dead).wait_time_seconds(1);
    let received = receive.message_system_attribute_names(System::DeadLetterQueueSourceArn).send().await?;
    let attributes =
        received.messages().first().and_then(|message| message.attributes()).ok_or("no attributes")?;
    let from = attributes.get(&System::DeadLetterQueueSourceArn);
    assert_eq!(from, bench.attribute(&source, Name::QueueArn).await?.as_ref());
    Ok(())
}

async fn refused_policies(bench: &Bench, source: &str, policies: &[String]) -> Outcome {
    for policy in policies {
        let set =
            bench.client.set_queue_attributes().queue_url(source).attributes(Name::RedrivePolicy, policy);
        assert_eq!(refusal(set.send().await)?, "InvalidParameterValue", "{policy}");
    }
    Ok(())
}

/// A redrive policy is JSON, and its count is 1 to 1000.
pub async fn redrive_policies_are_checked(bench: &Bench) -> Outcome {
    let source = bench.queue("checked", &[]).await?;
    bench.queue("target", &[]).await?;
    let arn =
        bench.attribute(&source, Name::QueueArn).await?.unwrap_or_default().replace("-checked", "-target");
    refused_policies(bench, &source, &[policy(&arn, 0), policy(&arn, 1001), "{".to_owned()]).await
}

/// The target of a redrive policy exists and is of the queue's type.
pub async fn redrive_targets_are_checked(bench: &Bench) -> Outcome {
    let source = bench.queue("checked", &[]).await?;
    bench.queue("target.fifo", &[]).await?;
    let arn = bench.attribute(&source, Name::QueueArn).await?.unwrap_or_default();
    let (missing, fifo) = (arn.replace("-checked", "-missing"), arn.replace("-checked", "-target.fifo"));
    refused_policies(bench, &source, &[policy(&missing, 3), policy(&fifo, 3)]).await
}

/// `ListDeadLetterSourceQueues`.
pub async fn a_queue_knows_whose_dead_letters_it_gets(bench: &Bench) -> Outcome {
    let (source, dead) = pair(bench, "", 2).await?;
    let sources = bench.client.list_dead_letter_source_queues().queue_url(&dead).send().await?;
    assert_eq!(sources.queue_urls().to_vec(), [source.as_str()]);
    let none = bench.client.list_dead_letter_source_queues().queue_url(&source).send().await?;
    assert_eq!(none.queue_urls(), Vec::<String>::new());
    Ok(())
}

/// A dead letter frees its group's line.
pub async fn a_fifo_line_goes_on_after_a_dead_letter(bench: &Bench) -> Outcome {
    let (source, dead) = pair(bench, ".fifo", 1).await?;
    bench.send_fifo(&source, "g", "poison").await?;
    assert_eq!(bench.bodies(&source).await?, ["poison"]);
    bench.send_fifo(&source, "g", "next").await?;
    bench.passage.pass(1).await;
    assert_eq!(bench.bodies(&source).await?, ["next"]);
    let receive = bench.client.receive_message().queue_url(&dead).wait_time_seconds(1);
    let received = receive.message_system_attribute_names(System::MessageGroupId).send().await?;
    let message = received.messages().first().ok_or("the message should be in the dead-letter queue")?;
    assert_eq!(message.body(), Some("poison"));
    let group = message.attributes().and_then(|all| all.get(&System::MessageGroupId));
    assert_eq!(group.map(String::as_str), Some("g"));
    Ok(())
}
