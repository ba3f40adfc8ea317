//! Rows as the API and the engine store them, for tests that put them there themselves.

use anyhow::Result;
use chrono::{DateTime, Duration, Utc};
use tidegate_domain::ids::{JobId, OneTimeShard};
use tidegate_domain::job::Job;
use tidegate_domain::key::Scopes;
use tidegate_engine::JobDraft;
use tidegate_store::keys::ApiKey;
use tidegate_store::{ClientRecord, KeyHash};

use super::CLIENT;

/// A one-time job of [`CLIENT`], created two hours before its launch, in a shard of the test's choice.
///
/// # Errors
/// Never: the name of the client is one.
pub fn one_time(draft: &JobDraft, launch_at: DateTime<Utc>, shard: u32, number: u64) -> Result<Job> {
    let place = OneTimeShard { minute: launch_at.timestamp() / 60, shard };
    Ok(Job {
        client: CLIENT.parse()?,
        id: JobId::one_time(place, number),
        revision: 1,
        trigger: draft.trigger.clone(),
        rules: draft.rules.clone(),
        paused: false,
        paused_because: None,
        terms: draft.terms.clone(),
        tags: draft.tags.clone(),
        expect: draft.expect,
        children: Vec::new(),
        emit_from: launch_at - Duration::hours(1),
        changed_at: launch_at - Duration::hours(2),
    })
}

/// [`CLIENT`], registered with a webhook secret.
///
/// # Errors
/// Never: the name of the client is one.
pub fn registered(secret: &str, created_at: DateTime<Utc>) -> Result<ClientRecord> {
    Ok(ClientRecord {
        id: CLIENT.parse()?,
        allowed_targets: Vec::new(),
        webhook_secret: secret.to_owned(),
        former_secrets: Vec::new(),
        defaults: Default::default(),
        quotas: Default::default(),
        alerts: None,
        suspended: None,
        deleting: None,
        revision: 1,
        created_at,
    })
}

/// A key of [`CLIENT`] for everything.
///
/// # Errors
/// Never: the name of the client is one.
pub fn api_key(key: &str, created_at: DateTime<Utc>) -> Result<ApiKey> {
    Ok(ApiKey {
        client: CLIENT.parse()?,
        hash: KeyHash::of(key),
        scopes: Scopes::all(),
        note: String::new(),
        expires_at: None,
        created_at,
    })
}
