//! One message: what it carries, how large it may be, and what a receive and a delete take.

use aws_sdk_sqs::primitives::Blob;
use aws_sdk_sqs::types::{
    MessageAttributeValue, MessageSystemAttributeName as System, QueueAttributeName as Name,
};

use crate::bench::{Bench, Outcome, receipt, refusal};

const MEBIBYTE: usize = 1024 * 1024;

/// Sent, received, deleted; with the digests and the id that both sides see.
pub async fn a_message_makes_the_round_trip(bench: &Bench) -> Outcome {
    let url = bench.queue("trip", &[]).await?;
    let body = "tide \"gate\" \u{1F30A}\n";
    let sent = bench.client.send_message().queue_url(&url).message_body(body).send().await?;
    assert_eq!(sent.md5_of_message_body(), Some("f313963adeda2575bc5d1631948c6021"));
    assert_eq!(sent.sequence_number(), None);
    let message = bench.receive_one(&url).await?;
    assert_eq!(message.body(), Some(body));
    assert_eq!(message.message_id(), sent.message_id());
    assert_eq!(message.md5_of_body(), sent.md5_of_message_body());
    assert_eq!(message.attributes(), None);
    assert_eq!(bench.bodies(&url).await?, Vec::<String>::new());
    bench.delete(&url, &message).await?;
    Ok(())
}

/// What `MessageSystemAttributeNames` brings.
pub async fn system_attributes_tell_of_the_message(bench: &Bench) -> Outcome {
    let url = bench.queue("system", &[]).await?;
    bench.send(&url, "x").await?;
    let receive = bench.client.receive_message().queue_url(&url);
    let received = receive.message_system_attribute_names(System::All).visibility_timeout(0).send().await?;
    let attributes =
        received.messages().first().and_then(|message| message.attributes()).ok_or("no attributes")?;
    let value = |name: System| attributes.get(&name).map(String::as_str);
    assert_eq!(value(System::ApproximateReceiveCount), Some("1"));
    let sent_at = value(System::SentTimestamp).unwrap_or_default();
    assert_eq!(sent_at.len(), 13, "milliseconds since the epoch: {sent_at}");
    assert!(value(System::ApproximateFirstReceiveTimestamp) >= Some(sent_at));
    assert_eq!(value(System::SequenceNumber), None);
    let receive = bench.client.receive_message().queue_url(&url);
    let received = receive.message_system_attribute_names(System::ApproximateReceiveCount).send().await?;
    let attributes =
        received.messages().first().and_then(|message| message.attributes()).ok_or("no attributes")?;
    assert_eq!(attributes.len(), 1);
    assert_eq!(attributes.get(&System::ApproximateReceiveCount).map(String::as_str), Some("2"));
    Ok(())
}

fn attribute(
    data_type: &str,
    text: Option<&str>,
    binary: Option<&[u8]>,
) -> Result<MessageAttributeValue, aws_sdk_sqs::error::BuildError> {
    let value =
        MessageAttributeValue::builder().data_type(data_type).set_string_value(text.map(str::to_owned));
    value.set_binary_value(binary.map(Blob::new)).build()
}

/// Attributes of all types, their digest, and which of them a receive asks for.
pub async fn message_attributes_make_the_round_trip(bench: &Bench) -> Outcome {
    let url = bench.queue("attributes", &[(Name::VisibilityTimeout, "0")]).await?;
    let sent = bench
        .client
        .send_message()
        .queue_url(&url)
        .message_body("x")
        .message_attributes("trace.id", attribute("String", Some("abc"), None)?)
        .message_attributes("trace.depth", attribute("Number.int", Some("3"), None)?)
        .message_attributes("blob", attribute("Binary", None, Some(&[1, 2, 255]))?)
        .send()
        .await?;
    assert_eq!(sent.md5_of_message_attributes(), Some("7feb6734f3d1aebdcdb62a465e2005c1"));
    for (wanted, expected) in [("All", 3), ("trace.*", 2), ("blob", 1)] {
        let receive = bench.client.receive_message().queue_url(&url).message_attribute_names(wanted);
        let received = receive.send().await?;
        let message = received.messages().first().ok_or("no message")?;
        let attributes = message.message_attributes().ok_or("no attributes")?;
        assert_eq!(attributes.len(), expected, "{wanted}");
        if wanted == "All" {
            assert_eq!(message.md5_of_message_attributes(), sent.md5_of_message_attributes());
            assert_eq!(attributes.get("trace.depth"), Some(&attribute("Number.int", Some("3"), None)?));
            assert_eq!(attributes.get("blob"), Some(&attribute("Binary", None, Some(&[1, 2, 255]))?));
        }
    }
    assert_eq!(bench.receive_one(&url).await?.message_attributes(), None);
    Ok(())
}

/// Names, types, values and number of attributes.
pub async fn message_attributes_are_checked(bench: &Bench) -> Outcome {
    let url = bench.queue("bad-attributes", &[]).await?;
    let send = || bench.client.send_message().queue_url(&url).message_body("x");
    for (name, value) in [
        ("AWS.mine", attribute("String", Some("x"), None)?),
        ("with space", attribute("String", Some("x"), None)?),
        ("unknown-type", attribute("Colour", Some("red"), None)?),
        ("empty", attribute("String", Some(""), None)?),
        ("no-number", attribute("Number", Some("three"), None)?),
    ] {
        assert_eq!(
            refusal(send().message_attributes(name, value).send().await)?,
            "InvalidParameterValue",
            "{name}"
        );
    }
    let mut eleven = send();
    for number in 0..11 {
        eleven = eleven.message_attributes(format!("a{number}"), attribute("String", Some("x"), None)?);
    }
    assert_eq!(refusal(eleven.send().await)?, "InvalidParameterValue");
    Ok(())
}

/// Empty bodies and characters that XML 1.0 does not have.
pub async fn bodies_are_checked(bench: &Bench) -> Outcome {
    let url = bench.queue("bodies", &[]).await?;
    let send = |body: &str| bench.client.send_message().queue_url(&url).message_body(body);
    assert_eq!(refusal(send("").send().await)?, "MissingParameter");
    for body in ["\u{0}", "a\u{b}b", "\u{FFFF}"] {
        assert_eq!(refusal(send(body).send().await)?, "InvalidMessageContents", "{body:?}");
    }
    Ok(())
}

/// 1 MiB goes; one byte more does not.
pub async fn a_message_may_have_one_mebibyte(bench: &Bench) -> Outcome {
    let url = bench.queue("large", &[]).await?;
    let send = |size: usize| bench.client.send_message().queue_url(&url).message_body("x".repeat(size));
    assert_eq!(refusal(send(MEBIBYTE + 1).send().await)?, "InvalidParameterValue");
    send(MEBIBYTE).send().await?;
    assert_eq!(bench.receive_one(&url).await?.body().map(str::len), Some(MEBIBYTE));
    Ok(())
}

/// Names, types and values of attributes count as well.
pub async fn attributes_count_towards_the_size(bench: &Bench) -> Outcome {
    let url = bench.queue("large-attributes", &[]).await?;
    let send = bench.client.send_message().queue_url(&url).message_body("x".repeat(MEBIBYTE));
    let send = send.message_attributes("a", attribute("String", Some("x"), None)?);
    assert_eq!(refusal(send.send().await)?, "InvalidParameterValue");
    Ok(())
}

/// `MaximumMessageSize`.
pub async fn a_queue_may_allow_less(bench: &Bench) -> Outcome {
    let url = bench.queue("small", &[(Name::MaximumMessageSize, "1024")]).await?;
    let send = |size: usize| bench.client.send_message().queue_url(&url).message_body("x".repeat(size));
    send(1024).send().await?;
    assert_eq!(refusal(send(1025).send().await)?, "InvalidParameterValue");
    Ok(())
}

/// Counts, waits and timeouts out of range.
pub async fn receive_parameters_are_checked(bench: &Bench) -> Outcome {
    let url = bench.queue("receives", &[]).await?;
    let receive = || bench.client.receive_message().queue_url(&url);
    for (what, receive) in [
        ("no message", receive().max_number_of_messages(0)),
        ("eleven messages", receive().max_number_of_messages(11)),
        ("more than 12 hours", receive().visibility_timeout(43_201)),
        ("less than nothing", receive().visibility_timeout(-1)),
        ("21 seconds", receive().wait_time_seconds(21)),
    ] {
        assert_eq!(refusal(receive.send().await)?, "InvalidParameterValue", "{what}");
    }
    Ok(())
}

/// Garbage, and the handle of another queue.
pub async fn receipt_handles_are_checked(bench: &Bench) -> Outcome {
    let url = bench.queue("handles", &[]).await?;
    let other = bench.queue("other-handles", &[]).await?;
    bench.send(&other, "x").await?;
    let message = bench.receive_one(&other).await?;
    for handle in ["garbage", receipt(&message)] {
        let delete = bench.client.delete_message().queue_url(&url).receipt_handle(handle);
        assert_eq!(refusal(delete.send().await)?, "ReceiptHandleIsInvalid");
        let change = bench.client.change_message_visibility().queue_url(&url).receipt_handle(handle);
        assert_eq!(refusal(change.visibility_timeout(1).send().await)?, "ReceiptHandleIsInvalid");
    }
    Ok(())
}

/// A deleted message does not come back.
pub async fn a_deleted_message_stays_deleted(bench: &Bench) -> Outcome {
    let url = bench.queue("deleted", &[(Name::VisibilityTimeout, "1")]).await?;
    bench.send(&url, "x").await?;
    let message = bench.receive_one(&url).await?;
    bench.delete(&url, &message).await?;
    bench.passage.pass(1).await;
    assert_eq!(bench.bodies(&url).await?, Vec::<String>::new());
    Ok(())
}

/// A second delete of the same message succeeds and does nothing.
pub async fn deleting_again_succeeds(bench: &Bench) -> Outcome {
    let url = bench.queue("deleted-twice", &[]).await?;
    bench.send(&url, "x").await?;
    let message = bench.receive_one(&url).await?;
    bench.delete(&url, &message).await?;
    bench.delete(&url, &message).await?;
    Ok(())
}
