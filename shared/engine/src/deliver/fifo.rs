//! What a FIFO queue knows messages by. A queue may be the target of several clients, so every id begins with the client.

use tidegate_domain::ids::{ClientId, JobId};
use tidegate_domain::job::Terms;
use tidegate_domain::target::{MessageGroup, Target};

use super::event::digest;

/// The longest group or deduplication id of SQS, in bytes.
const ID_BYTES: usize = 128;
/// The length of a SHA-256, in bytes.
const HASH_BYTES: usize = 32;

/// The message group of an event under its job's terms: those of one group arrive in order, and wait for no other's.
pub(super) fn group_id_of(client: &ClientId, job: &JobId, terms: &Terms) -> String {
    let group = match &terms.target {
        Target::Sqs { group, .. } => group,
        _ => &MessageGroup::Job,
    };
    // No job's name has a sign like that.
    match (group, &terms.policy) {
        (MessageGroup::Fixed(name), _) => id(client, &format!("={name}")),
        (MessageGroup::Policy, Some(policy)) => id(client, &format!("*{policy}")),
        (MessageGroup::Policy, None) | (MessageGroup::Job, _) => group_id(client, job),
    }
}

/// The message group of a job.
pub(super) fn group_id(client: &ClientId, job: &JobId) -> String {
    id(client, job.as_str())
}

/// What repeats of one delivery have in common: SQS takes the first of them in five minutes.
pub(super) fn deduplication_id(client: &ClientId, delivery: &str) -> String {
    id(client, delivery)
}

/// `<client>:<name>`, or `<client>#<SHA-256 of the name>` where that is too long. A client's id has neither sign.
fn id(client: &ClientId, name: &str) -> String {
    let plain = format!("{client}:{name}");
    if plain.len() <= ID_BYTES {
        return plain;
    }
    format!("{client}#{}", digest(name, HASH_BYTES))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_clients_never_share_an_id() {
        let (acme, beta): (ClientId, ClientId) = ("acme".parse().unwrap(), "beta".parse().unwrap());
        let job: JobId = "nightly".parse().unwrap();
        assert_eq!(group_id(&acme, &job), "acme:nightly");
        assert_ne!(group_id(&acme, &job), group_id(&beta, &job));
        let event = "nightly.1.1790000000.0";
        assert_eq!(deduplication_id(&acme, event), "acme:nightly.1.1790000000.0");
        assert_ne!(deduplication_id(&acme, event), deduplication_id(&beta, event));
    }

    #[test]
    fn a_long_id_becomes_a_hash_that_sqs_takes() {
        let client: ClientId = "c".repeat(32).parse().unwrap();
        let ids: Vec<String> =
            (0..3).map(|n| deduplication_id(&client, &format!("{}.{n}", "j".repeat(200)))).collect();
        assert!(ids.iter().all(|id| id.len() == 32 + 1 + 64), "{ids:?}");
        assert!(ids[0] != ids[1] && ids[1] != ids[2]);
    }
}
