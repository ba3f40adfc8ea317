//! The release queue: consumers that release by a message instead of a call.
//!
//! A queue does not say who sent a message, and nobody needs to know: a token that this deployment signed is proof enough.
//! Releases of many messages that fall on one slot group are one write. Nobody is answered, so what cannot
//! be released is in the log.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::value::RawValue;
use tidegate_domain::ids::ClientId;
use tidegate_domain::limits::TOKENS_PER_CALL;
use tidegate_domain::slots::GroupKey;
use tidegate_domain::token::SignedToken;
use tidegate_protocol::{self as protocol, ReleaseEntry, ReleaseMessage};
use tracing::{error, warn};

use super::Tokens;
use super::entry::read_release;
use crate::TokenKey;
use crate::effect::Release;
use crate::figures::POISON;
use crate::queues::Handled;
use crate::throttle::release::Released;

/// Where the releases of a message go.
#[derive(Debug, Default)]
struct Sorted {
    by_group: BTreeMap<GroupKey, Vec<Release>>,
    /// Which messages each group's releases came from.
    messages: BTreeMap<GroupKey, BTreeSet<usize>>,
}

impl Tokens {
    /// Handles messages of the release queue together. `bodies` are their texts, with how often each came; the answers
    /// are in their order. One that cannot be read spoils no other: it is set aside among the dead letters.
    pub(crate) async fn handle_releases(&self, bodies: &[(&str, u32)]) -> Vec<Handled> {
        let mut handled = vec![Handled::Done; bodies.len()];
        let token_key = match self.keys.key().await {
            Ok(key) => key,
            Err(error) => {
                warn!(%error, messages = bodies.len(), "releases come again");
                return vec![Handled::Retry; bodies.len()];
            }
        };
        let mut sorted = Sorted::default();
        for ((number, (body, received)), handled) in bodies.iter().enumerate().zip(&mut handled) {
            if let Err(reason) = sorted.add(number, body, &token_key) {
                error!(
                    reason,
                    received,
                    { POISON } = 1_u64,
                    "a release message cannot be read: it goes to the dead letters"
                );
                if let Err(error) = self.queues.set_release_aside(body, &reason).await {
                    warn!(%error, "it comes again");
                    *handled = Handled::Retry;
                }
            }
        }
        for (key, released) in self.release_groups(sorted.by_group).await {
            match released {
                Ok(answers) => {
                    let idle = |answer: &Released| !matches!(answer, Released::Released);
                    for (token, answer) in answers.into_iter().filter(|(_, answer)| idle(answer)) {
                        warn!(%token, ?answer, "a release message changed nothing");
                    }
                }
                Err(error) => {
                    warn!(%error, group = ?key, "releases come again");
                    for number in sorted.messages.get(&key).into_iter().flatten() {
                        handled
                            .iter_mut()
                            .skip(*number)
                            .take(1)
                            .for_each(|handled| *handled = Handled::Retry);
                    }
                }
            }
        }
        handled
    }
}

impl Sorted {
    fn add(&mut self, number: usize, body: &str, key: &TokenKey) -> Result<(), String> {
        let body: ReleaseMessage = serde_json::from_str(body).map_err(|e| e.to_string())?;
        let client: Option<ClientId> =
            body.client_id.map(|id| id.parse()).transpose().map_err(|e| format!("client_id: {e}"))?;
        if !(1..=TOKENS_PER_CALL).contains(&body.tokens.len()) {
            return Err(format!("tokens holds {}; 1 to {TOKENS_PER_CALL} are taken", body.tokens.len()));
        }
        for entry in body.tokens {
            // Its neighbours are served whatever it says.
            match read(&entry, client.as_ref(), key) {
                Ok(release) => {
                    let key = release.token.group.clone();
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
fn read(entry: &RawValue, client: Option<&ClientId>, key: &TokenKey) -> Result<Release, String> {
    let read: ReleaseEntry = serde_json::from_str(entry.get()).map_err(|e| format!("{entry}: {e}"))?;
    let read = protocol::Release::from(read);
    // Never with its MAC: the log would hold what frees a token.
    let token: Option<SignedToken> = read.token.parse().ok();
    let named = token.map(|signed| format!("token '{}': ", signed.token)).unwrap_or_default();
    let release = read_release(read, key).map_err(|e| format!("{named}{e}"))?;
    match client.filter(|client| *client != release.token.client()) {
        Some(client) => Err(format!("token '{}' is not {client}'s", release.token)),
        None => Ok(release),
    }
}

#[cfg(test)]
mod tests {
    use tidegate_domain::slots::Outcome;

    use super::*;

    fn key() -> TokenKey {
        TokenKey::new(&[7; 32]).unwrap()
    }

    fn signed(token: &str) -> String {
        key().sign(&token.parse().unwrap()).to_string()
    }

    #[test]
    fn a_message_is_sorted_by_slot_group_and_a_bad_token_spoils_no_other() {
        let mut sorted = Sorted::default();
        let body = serde_json::json!({"client_id": "acme", "tokens": [
            signed("tok.acme.small.0.3.17.2.9"),
            {"token": signed("tok.acme.small.1.3.17.2.9"), "outcome": "failed", "error": "no disk"},
            "nonsense", signed("tok.zeta.small.0.3.17.2.9"), 7,
            {"token": signed("tok.acme.small.0.5.18.2.11"), "more": 1},
            {"token": signed("tok.acme.small.0.6.19.2.12"), "error": "but it succeeded"},
            // Neither guessed nor signed by somebody else.
            "tok.acme.small.0.7.20.2.13",
            TokenKey::new(&[8; 32]).unwrap().sign(&"tok.acme.small.0.7.20.2.13".parse().unwrap()).to_string(),
        ]});
        sorted.add(0, &body.to_string(), &key()).unwrap();
        let unnamed = serde_json::json!({"tokens": [signed("tok.acme.small.0.4.18.2.10")]});
        sorted.add(1, &unnamed.to_string(), &key()).unwrap();
        let sizes: Vec<usize> = sorted.by_group.values().map(Vec::len).collect();
        assert_eq!(sizes, [2, 1]);
        let second = sorted.by_group.values().nth(1).and_then(|releases| releases.first()).unwrap();
        assert_eq!((second.outcome, second.text.as_deref()), (Outcome::Failed, Some("no disk")));
    }

    #[test]
    fn what_is_said_of_an_entry_names_its_token_without_what_frees_it() {
        let token = "tok.acme.small.0.6.19.2.12";
        let entry = serde_json::json!({"token": signed(token), "error": "but it succeeded"}).to_string();
        let entry = RawValue::from_string(entry).unwrap();
        let reason = read(&entry, None, &key()).unwrap_err();
        assert!(reason.contains(token) && !reason.contains(&signed(token)), "{reason}");
    }

    #[test]
    fn what_is_no_release_message_says_why() {
        for (body, why) in [
            ("", "EOF"),
            ("{}", "tokens"),
            (r#"{"client_id":"acme","tokens":[]}"#, "tokens holds 0"),
            (r#"{"client_id":"ac me","tokens":["a"]}"#, "client_id"),
            (r#"{"client_id":"acme","tokens":["a"],"more":1}"#, "more"),
        ] {
            let reason = Sorted::default().add(0, body, &key()).unwrap_err();
            assert!(reason.contains(why), "{body}: {reason}");
        }
    }
}
