//! Message groups on standard queues: fair queues.

use aws_sdk_sqs::types::MessageSystemAttributeName as System;

use crate::bench::{Bench, Outcome, refusal};

/// A group is kept with its message and blocks nothing.
pub async fn a_standard_queue_takes_message_groups(bench: &Bench) -> Outcome {
    let url = bench.queue("fair", &[]).await?;
    for body in ["a", "b"] {
        bench
            .client
            .send_message()
            .queue_url(&url)
            .message_body(body)
            .message_group_id("tenant")
            .send()
            .await?;
    }
    for _ in 0..2 {
        let receive = bench.client.receive_message().queue_url(&url);
        let received = receive.message_system_attribute_names(System::MessageGroupId).send().await?;
        let attributes =
            received.messages().first().and_then(|message| message.attributes()).ok_or("no attributes")?;
        assert_eq!(attributes.get(&System::MessageGroupId).map(String::as_str), Some("tenant"));
    }
    Ok(())
}

/// Deduplication belongs to FIFO queues.
pub async fn a_standard_queue_takes_no_deduplication_id(bench: &Bench) -> Outcome {
    let url = bench.queue("fair", &[]).await?;
    let send = bench.client.send_message().queue_url(&url).message_body("x").message_deduplication_id("x");
    assert_eq!(refusal(send.send().await)?, "InvalidParameterValue");
    Ok(())
}
