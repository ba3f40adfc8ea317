//! In which group of a fair queue the messages of a client go: one, or as many as its share of deliveries says, so that it has as many
//! turns.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use tidegate_domain::ids::ClientId;
use tidegate_domain::quota::DeliveryShare;

/// Whose messages have more turns than one, as the index said when a scan read it last.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    shares: RwLock<Arc<BTreeMap<ClientId, DeliveryShare>>>,
    sent: AtomicU32,
}

impl Turns {
    /// Goes by these shares from now on.
    pub(crate) fn go_by(&self, shares: &BTreeMap<ClientId, DeliveryShare>) {
        let mut known = self.shares.write().unwrap_or_else(PoisonError::into_inner);
        if **known != *shares {
            *known = Arc::new(shares.clone());
        }
    }

    /// The group of the next message of a client: its name, or for each turn beyond the first that and the number of the turn.
    pub(super) fn group(&self, client: &ClientId) -> String {
        let shares = Arc::clone(&self.shares.read().unwrap_or_else(PoisonError::into_inner));
        let Some(share) = shares.get(client) else { return client.to_string() };
        // Which of them makes no difference, as long as all are.
        match self.sent.fetch_add(1, Ordering::Relaxed).checked_rem(share.get()) {
            None | Some(0) => client.to_string(),
            Some(turn) => format!("{client}~{turn}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_has_as_many_groups_as_its_share_says_and_others_one() {
        let (acme, other): (ClientId, ClientId) = ("acme".parse().unwrap(), "other".parse().unwrap());
        let turns = Turns::default();
        assert_eq!(turns.group(&acme), "acme");
        turns.go_by(&BTreeMap::from([(acme.clone(), DeliveryShare::new(3).unwrap())]));
        let mut groups: Vec<String> = (0..6).map(|_| turns.group(&acme)).collect();
        groups.sort();
        assert_eq!(groups, ["acme", "acme", "acme~1", "acme~1", "acme~2", "acme~2"]);
        assert_eq!(turns.group(&other), "other");
        turns.go_by(&BTreeMap::new());
        assert_eq!(turns.group(&acme), "acme");
    }
}
