//! Queues as a whole.

use aws_sdk_sqs::types::QueueAttributeName as Name;

use crate::bench::{Bench, Outcome, refusal};

/// `CreateQueue` is idempotent, as long as the attributes it names agree.
pub async fn creating_again_finds_the_same_queue(bench: &Bench) -> Outcome {
    let url = bench.queue("twice", &[(Name::VisibilityTimeout, "40")]).await?;
    assert_eq!(bench.queue("twice", &[(Name::VisibilityTimeout, "40")]).await?, url);
    assert_eq!(bench.queue("twice", &[]).await?, url);
    let other =
        bench.client.create_queue().queue_name(bench.name("twice")).attributes(Name::VisibilityTimeout, "41");
    assert_eq!(refusal(other.send().await)?, "QueueAlreadyExists");
    Ok(())
}

/// 1 to 80 letters, digits, hyphens and underscores.
pub async fn names_are_checked(bench: &Bench) -> Outcome {
    let long = "x".repeat(81);
    for name in ["with.dot", "with space", long.as_str()] {
        let create = bench.client.create_queue().queue_name(name);
        assert_eq!(refusal(create.send().await)?, "InvalidParameterValue", "{name}");
    }
    Ok(())
}

/// A FIFO queue is one by its name and by its attribute.
pub async fn fifo_goes_with_its_name(bench: &Bench) -> Outcome {
    let by_name = bench.client.create_queue().queue_name(bench.name("by-name-only.fifo"));
    assert_eq!(refusal(by_name.send().await)?, "InvalidParameterValue");
    let by_attribute = bench.client.create_queue().queue_name(bench.name("by-attribute-only"));
    assert_eq!(
        refusal(by_attribute.attributes(Name::FifoQueue, "true").send().await)?,
        "InvalidParameterValue"
    );
    Ok(())
}

/// `GetQueueUrl` finds what exists and nothing else.
pub async fn a_queue_is_found_by_its_name(bench: &Bench) -> Outcome {
    let url = bench.queue("there", &[]).await?;
    let found = bench.client.get_queue_url().queue_name(bench.name("there")).send().await?;
    assert_eq!(found.queue_url(), Some(url.as_str()));
    let missing = bench.client.get_queue_url().queue_name(bench.name("missing")).send().await;
    assert_eq!(refusal(missing)?, "AWS.SimpleQueueService.NonExistentQueue");
    Ok(())
}

/// `ListQueues` with a prefix, whole and page by page.
pub async fn lists_go_by_prefix_and_page(bench: &Bench) -> Outcome {
    let mut urls = Vec::new();
    for name in ["list-a", "list-b", "list-c"] {
        urls.push(bench.queue(name, &[]).await?);
    }
    bench.queue("unlisted", &[]).await?;
    let list = || bench.client.list_queues().queue_name_prefix(bench.name("list-"));
    let mut whole = list().send().await?.queue_urls.unwrap_or_default();
    whole.sort_unstable();
    assert_eq!(whole, urls);
    let first = list().max_results(2).send().await?;
    assert_eq!(first.queue_urls().len(), 2);
    assert!(first.next_token().is_some());
    let second = list().max_results(2).set_next_token(first.next_token.clone()).send().await?;
    let mut paged = [first.queue_urls(), second.queue_urls()].concat();
    paged.sort_unstable();
    assert_eq!(paged, urls);
    assert_eq!(second.next_token(), None);
    Ok(())
}

/// `DeleteQueue` takes the queue and its messages away.
pub async fn a_deleted_queue_is_gone(bench: &Bench) -> Outcome {
    let url = bench.queue("gone", &[]).await?;
    bench.send(&url, "lost").await?;
    bench.client.delete_queue().queue_url(&url).send().await?;
    let found = bench.client.get_queue_url().queue_name(bench.name("gone")).send().await;
    assert_eq!(refusal(found)?, "AWS.SimpleQueueService.NonExistentQueue");
    let sent = bench.client.send_message().queue_url(&url).message_body("late").send().await;
    assert_eq!(refusal(sent)?, "AWS.SimpleQueueService.NonExistentQueue");
    Ok(())
}

/// Every call on a queue that does not exist says so.
pub async fn every_call_needs_its_queue(bench: &Bench) -> Outcome {
    let url = bench.queue("model", &[]).await?.replace("-model", "-missing");
    let client = &bench.client;
    let codes = [
        refusal(client.send_message().queue_url(&url).message_body("x").send().await)?,
        refusal(client.receive_message().queue_url(&url).send().await)?,
        refusal(client.delete_message().queue_url(&url).receipt_handle("x").send().await)?,
        refusal(client.get_queue_attributes().queue_url(&url).attribute_names(Name::All).send().await)?,
        refusal(
            client.set_queue_attributes().queue_url(&url).attributes(Name::DelaySeconds, "1").send().await,
        )?,
        refusal(client.purge_queue().queue_url(&url).send().await)?,
        refusal(client.delete_queue().queue_url(&url).send().await)?,
        refusal(client.list_queue_tags().queue_url(&url).send().await)?,
        refusal(
            client
                .change_message_visibility()
                .queue_url(&url)
                .receipt_handle("x")
                .visibility_timeout(1)
                .send()
                .await,
        )?,
    ];
    assert_eq!(codes, [(); 9].map(|()| "AWS.SimpleQueueService.NonExistentQueue".to_owned()));
    Ok(())
}

/// The defaults that AWS documents, and changed values.
pub async fn attributes_have_defaults_and_can_be_set(bench: &Bench) -> Outcome {
    let url = bench.queue("plain", &[]).await?;
    for (name, value) in [
        (Name::DelaySeconds, "0"),
        (Name::VisibilityTimeout, "30"),
        (Name::MessageRetentionPeriod, "345600"),
        (Name::ReceiveMessageWaitTimeSeconds, "0"),
        (Name::MaximumMessageSize, "1048576"),
        (Name::ApproximateNumberOfMessages, "0"),
    ] {
        assert_eq!(bench.attribute(&url, name.clone()).await?.as_deref(), Some(value), "{name}");
    }
    let arn = bench.attribute(&url, Name::QueueArn).await?.unwrap_or_default();
    assert!(arn.starts_with("arn:aws:sqs:") && arn.ends_with(&format!(":{}", bench.name("plain"))), "{arn}");
    assert_eq!(bench.attribute(&url, Name::RedrivePolicy).await?, None);
    let set = bench.client.set_queue_attributes().queue_url(&url);
    set.attributes(Name::VisibilityTimeout, "7").attributes(Name::DelaySeconds, "3").send().await?;
    assert_eq!(bench.attribute(&url, Name::VisibilityTimeout).await?.as_deref(), Some("7"));
    assert_eq!(bench.attribute(&url, Name::DelaySeconds).await?.as_deref(), Some("3"));
    let all = bench.client.get_queue_attributes().queue_url(&url).attribute_names(Name::All).send().await?;
    assert_eq!(all.attributes().and_then(|all| all.get(&Name::DelaySeconds)).map(String::as_str), Some("3"));
    Ok(())
}

/// Values out of range.
pub async fn attribute_values_are_checked(bench: &Bench) -> Outcome {
    let url = bench.queue("strict", &[]).await?;
    for (name, value) in [
        (Name::DelaySeconds, "901"),
        (Name::VisibilityTimeout, "43201"),
        (Name::MessageRetentionPeriod, "59"),
        (Name::ReceiveMessageWaitTimeSeconds, "21"),
        (Name::MaximumMessageSize, "1048577"),
        (Name::DelaySeconds, "soon"),
    ] {
        let set = bench.client.set_queue_attributes().queue_url(&url).attributes(name.clone(), value);
        assert_eq!(refusal(set.send().await)?, "InvalidAttributeValue", "{name} {value}");
    }
    Ok(())
}

/// Attributes that queues do not have.
pub async fn attribute_names_are_checked(bench: &Bench) -> Outcome {
    let url = bench.queue("strict", &[]).await?;
    let set = bench.client.set_queue_attributes().queue_url(&url).attributes(Name::from("Colour"), "red");
    assert_eq!(refusal(set.send().await)?, "InvalidAttributeName");
    let get = bench.client.get_queue_attributes().queue_url(&url).attribute_names(Name::from("Colour"));
    assert_eq!(refusal(get.send().await)?, "InvalidAttributeName");
    Ok(())
}

/// Visible, in flight, delayed.
pub async fn messages_are_counted(bench: &Bench) -> Outcome {
    let url = bench.queue("counted", &[]).await?;
    for body in ["a", "b", "c"] {
        bench.send(&url, body).await?;
    }
    bench.client.send_message().queue_url(&url).message_body("d").delay_seconds(60).send().await?;
    bench.client.receive_message().queue_url(&url).max_number_of_messages(1).send().await?;
    for (name, count) in [
        (Name::ApproximateNumberOfMessages, "2"),
        (Name::ApproximateNumberOfMessagesNotVisible, "1"),
        (Name::ApproximateNumberOfMessagesDelayed, "1"),
    ] {
        assert_eq!(bench.attribute(&url, name.clone()).await?.as_deref(), Some(count), "{name}");
    }
    Ok(())
}

/// `TagQueue`, `UntagQueue`, `ListQueueTags`.
pub async fn tags_are_kept(bench: &Bench) -> Outcome {
    let url = bench.queue("tagged", &[]).await?;
    bench.client.tag_queue().queue_url(&url).tags("team", "tide").tags("stage", "test").send().await?;
    bench.client.untag_queue().queue_url(&url).tag_keys("stage").send().await?;
    let tags = bench.client.list_queue_tags().queue_url(&url).send().await?.tags.unwrap_or_default();
    assert_eq!(tags.into_iter().collect::<Vec<_>>(), [("team".to_owned(), "tide".to_owned())]);
    Ok(())
}

/// `PurgeQueue` takes visible, delayed and received messages.
pub async fn a_purge_empties_the_queue(bench: &Bench) -> Outcome {
    let url = bench.queue("purged", &[(Name::VisibilityTimeout, "1")]).await?;
    bench.send(&url, "received").await?;
    bench.receive_one(&url).await?;
    bench.send(&url, "visible").await?;
    bench.client.send_message().queue_url(&url).message_body("delayed").delay_seconds(1).send().await?;
    bench.client.purge_queue().queue_url(&url).send().await?;
    bench.passage.pass(2).await;
    assert_eq!(bench.bodies(&url).await?, Vec::<String>::new());
    Ok(())
}

/// One purge in 60 seconds.
pub async fn a_second_purge_has_to_wait(bench: &Bench) -> Outcome {
    let url = bench.queue("purged-twice", &[]).await?;
    bench.client.purge_queue().queue_url(&url).send().await?;
    let again = bench.client.purge_queue().queue_url(&url).send().await;
    assert_eq!(refusal(again)?, "AWS.SimpleQueueService.PurgeQueueInProgress");
    Ok(())
}
