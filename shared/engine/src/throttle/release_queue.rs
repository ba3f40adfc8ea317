//! The release queue: consumers that release by a message instead of a call.
//!
//! A message names its client, since a queue does not say who sent it: whoever may send to the queue is trusted to be
//! that client. Releases of many messages that fall on one slot group are one write. Nobody is answered, so what cannot
//! be released is in the log.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::value::RawValue;
use tidegate_domain::ids::ClientId;
use tidegate_domain::limits::{RESULT_BYTES, TOKENS_PER_CALL};
use tidegate_domain::token::Token;
use tidegate_store::slots::{GroupKey, Outcome};
use tracing::{error, warn};

use super::release::{Release, Released, group_of};
use crate::{Engine, Handled};

/// A message of the release queue: the body of a release call, and whose it is.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Body {
    client_id: String,
    tokens: Vec<Box<RawValue>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Ended {
    token: String,
    #[serde(default)]
    outcome: Word,
    #[serde(default)]
    result: Option<String>,
    #[serde(default)]
    error: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Word {
    #[default]
    Succeeded,
    Failed,
}

/// Where the releases of a message go.
#[derive(Debug, Default)]
struct Sorted {
    by_group: BTreeMap<GroupKey, Vec<Release>>,
    /// Which messages each group's releases came from.
    messages: BTreeMap<GroupKey, BTreeSet<usize>>,
}

impl Engine {
    /// Handles messages of the release queue together. `bodies` are their texts, with how often each came; the answers
    /// are in their order. One that cannot be read spoils no other: it comes again, and ends in the dead letters.
    pub async fn handle_releases(&self, bodies: &[(String, u32)]) -> Vec<Handled> {
        let mut handled = vec![Handled::Done; bodies.len()];
        let mut sorted = Sorted::default();
        for (number, (body, received)) in bodies.iter().enumerate() {
            if let Err(reason) = sorted.add(number, body) {
                error!(reason, received, "a release message cannot be read: it goes to the dead letters");
                handled[number] = Handled::Again;
            }
        }
        for (key, releases) in sorted.by_group {
            let client = key.client.clone();
            match Box::pin(self.release_now(&client, releases)).await {
                Ok(answers) => {
                    let idle = |answer: &Released| !matches!(answer, Released::Released);
                    for (token, answer) in answers.into_iter().filter(|(_, answer)| idle(answer)) {
                        warn!(%token, ?answer, "a release message changed nothing");
                    }
                }
                Err(error) => {
                    warn!(%error, group = ?key, "releases come again");
                    for number in sorted.messages.get(&key).into_iter().flatten() {
                        handled[*number] = Handled::Again;
                    }
                }
            }
        }
        handled
    }
}

impl Sorted {
    fn add(&mut self, number: usize, body: &str) -> Result<(), String> {
        let body: Body = serde_json::from_str(body).map_err(|e| e.to_string())?;
        let client: ClientId = body.client_id.parse().map_err(|e| format!("client_id: {e}"))?;
        if !(1..=TOKENS_PER_CALL).contains(&body.tokens.len()) {
            return Err(format!("tokens holds {}; 1 to {TOKENS_PER_CALL} are taken", body.tokens.len()));
        }
        for entry in body.tokens {
            // Its neighbours are served whatever it says.
            match read(&entry, &client) {
                Ok(release) => {
                    let key = group_of(&release.token);
                    self.messages.entry(key.clone()).or_default().insert(number);
                    self.by_group.entry(key).or_default().push(release);
                }
                Err(reason) => warn!(reason, "a token of a release message is passed over"),
            }
        }
        Ok(())
    }
}

/// Reads an entry: a token's text, or an object that says how its event ended.
fn read(entry: &RawValue, client: &ClientId) -> Result<Release, String> {
    let ended = match serde_json::from_str::<String>(entry.get()) {
        Ok(token) => Ended { token, outcome: Word::Succeeded, result: None, error: None },
        Err(_) => serde_json::from_str(entry.get()).map_err(|e| format!("{entry}: {e}"))?,
    };
    ended.checked(client)
}

impl Ended {
    fn checked(self, client: &ClientId) -> Result<Release, String> {
        let ended = self;
        let token: Token = ended.token.parse().map_err(|e| format!("token: {e}"))?;
        if token.client != *client {
            return Err(format!("token '{token}' is not {client}'s"));
        }
        match (ended.outcome, &ended.result, &ended.error) {
            (Word::Succeeded, _, Some(_)) => return Err(format!("'{token}' succeeded, and has an error")),
            (Word::Failed, Some(_), _) => return Err(format!("'{token}' failed, and has a result")),
            _ => {}
        }
        let text = ended.result.or(ended.error);
        if let Some(long) = text.as_ref().filter(|text| text.len() > RESULT_BYTES) {
            return Err(format!(
                "the text for '{token}' is {} bytes; {RESULT_BYTES} is the most",
                long.len()
            ));
        }
        let outcome = if ended.outcome == Word::Succeeded { Outcome::Succeeded } else { Outcome::Failed };
        Ok(Release { token, outcome, text })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_sorted_by_slot_group_and_a_bad_token_spoils_no_other() {
        let mut sorted = Sorted::default();
        let body = r#"{"client_id":"acme","tokens":["tok.acme.small.0.3.17.2.9",
            {"token":"tok.acme.small.1.3.17.2.9","outcome":"failed","error":"no disk"},
            "nonsense", "tok.zeta.small.0.3.17.2.9", 7, {"token":"tok.acme.small.0.5.18.2.11","more":1},
            {"token":"tok.acme.small.0.6.19.2.12","error":"but it succeeded"}]}"#;
        sorted.add(0, body).unwrap();
        sorted.add(1, r#"{"client_id":"acme","tokens":["tok.acme.small.0.4.18.2.10"]}"#).unwrap();
        let sizes: Vec<usize> = sorted.by_group.values().map(Vec::len).collect();
        assert_eq!(sizes, [2, 1]);
        let second = sorted.by_group.values().nth(1).and_then(|releases| releases.first()).unwrap();
        assert_eq!((second.outcome, second.text.as_deref()), (Outcome::Failed, Some("no disk")));
    }

    #[test]
    fn what_is_no_release_message_says_why() {
        for (body, why) in [
            ("", "EOF"),
            ("{}", "client_id"),
            (r#"{"client_id":"acme","tokens":[]}"#, "tokens holds 0"),
            (r#"{"client_id":"ac me","tokens":["a"]}"#, "client_id"),
            (r#"{"client_id":"acme","tokens":["a"],"more":1}"#, "more"),
        ] {
            let reason = Sorted::default().add(0, body).unwrap_err();
            assert!(reason.contains(why), "{body}: {reason}");
        }
    }
}
