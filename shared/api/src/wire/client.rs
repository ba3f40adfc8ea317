//! Clients as they travel.

use chrono::{DateTime, Utc};
use serde::Deserialize;
use tidegate_domain::ids::ClientId;
use tidegate_domain::job::{Attempts, HistoryDays, JobDefaults};
use tidegate_domain::limits::{ALLOWED_TARGETS, CLOSED_BECAUSE_BYTES, NAME_BYTES, TARGET_URL_BYTES};
use tidegate_domain::quota::Quotas;
use tidegate_domain::rules::Relevancy;
use tidegate_domain::secret::KeptSeconds;
use tidegate_domain::target::Target;
use tidegate_protocol::{self as protocol, ClientView, DeletionStage};
use tidegate_store::clients::{Client, Deletion, Stage};
use utoipa::ToSchema;

use crate::form::Form;
use crate::problem::FieldErrors;
use crate::wire::bounds::{List, Text, bounded_fields};
use crate::wire::flow::given;
use crate::wire::job::{history, history_view, said};
use crate::wire::number::{Number, check_given};
use crate::wire::quota::{self, QuotasBody};
use crate::wire::retry::{RetryBody, retry_view};
use crate::wire::target::TargetBody;
use crate::wire::{instant, target};

/// A client as an admin registers it.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClientBody {
    /// Its name: 1 to 32 letters, digits, '-' or '_'.
    #[schema(value_type = String, example = "acme")]
    client_id: Text<NAME_BYTES>,
    /// The addresses that its jobs may name: URLs and ARNs, in which one '*' stands for any run of characters. When left out: none on
    /// AWS, every one in local mode.
    #[schema(value_type = Option<Vec<String>>, example = json!(["https://sqs.eu-west-1.amazonaws.com/123456789012/acme-*"]))]
    allowed_targets: Option<List<String, ALLOWED_TARGETS>>,
    /// What its jobs have that say nothing of it, from when they are written.
    #[serde(default)]
    defaults: JobDefaultsBody,
    /// What it may take at the most.
    #[serde(default)]
    quotas: QuotasBody,
    /// Who is told of launches that were not over when their job's `expect` says: a queue or an endpoint. Nobody when left out.
    alerts: Option<TargetBody>,
}

bounded_fields!(ClientBody: client_id, allowed_targets);

/// A client as it is registered, after its check.
pub(crate) struct CheckedClient {
    pub(crate) id: ClientId,
    /// `None`: it says nothing of them.
    pub(crate) allowed_targets: Option<Vec<String>>,
    pub(crate) defaults: JobDefaults,
    pub(crate) quotas: Quotas,
    pub(crate) alerts: Option<Target>,
}

/// What the jobs of a client have that say nothing of it, from when they are written.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = JobDefaultsBody, example = json!({"history": "failures", "relevancy_seconds": 3600}))]
pub(crate) struct JobDefaultsBody {
    /// When an event is sent again that its target did not take.
    retry: Option<RetryBody>,
    /// The most deliveries of one event.
    #[schema(value_type = Option<u32>)]
    max_attempts: Option<Number<Attempts>>,
    /// How old a launch may be when it is delivered, in seconds.
    #[schema(value_type = Option<u32>)]
    relevancy_seconds: Option<Number<Relevancy>>,
    /// How much of what happened is kept.
    history: Option<protocol::History>,
    /// Days that it is kept: runs, records of events, dead letters. 14 when left out. A job cannot name it.
    #[schema(value_type = Option<u32>)]
    history_days: Option<Number<HistoryDays>>,
}

bounded_fields!(JobDefaultsBody: max_attempts, relevancy_seconds, history_days);

impl JobDefaultsBody {
    fn check(&self, errors: &mut FieldErrors) -> Option<JobDefaults> {
        let mut within = FieldErrors::default();
        let retry = self.retry.as_ref().map(|retry| retry.check(&mut within));
        let max_attempts = check_given(self.max_attempts, &mut within);
        let relevancy = check_given(self.relevancy_seconds, &mut within);
        let history_days = check_given(self.history_days, &mut within);
        errors.append_within("defaults", within);
        Some(JobDefaults {
            retry: given(retry)?,
            max_attempts: max_attempts?,
            relevancy: relevancy?,
            history: given(self.history.map(history))?,
            history_days: history_days?,
        })
    }
}

/// What is to change of a client; what is left out stays as it is.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClientPatch {
    /// The addresses that its jobs may name from now on, in the place of all before: `["*"]` for every address, `[]` for none.
    /// Jobs that are there stay as they are.
    #[schema(value_type = Option<Vec<String>>, example = json!(["https://acme.example/*"]))]
    allowed_targets: Option<List<String, ALLOWED_TARGETS>>,
    /// What its jobs have that say nothing of it, in the place of all before: `{}` for nothing. Jobs that are there stay as they
    /// are until they are written again.
    defaults: Option<JobDefaultsBody>,
    /// What it may take at the most, in the place of all before: `{}` for no bounds.
    quotas: Option<QuotasBody>,
    /// Who is told from now on of launches that were not over when their job's `expect` says; null for nobody.
    #[serde(default, deserialize_with = "said")]
    #[schema(value_type = Option<TargetBody>)]
    alerts: Option<Option<TargetBody>>,
}

bounded_fields!(ClientPatch: allowed_targets);

/// What is to change of a client, after its check.
pub(crate) struct CheckedClientPatch {
    pub(crate) allowed_targets: Option<Vec<String>>,
    pub(crate) defaults: Option<JobDefaults>,
    pub(crate) quotas: Option<Quotas>,
    /// `None`: they stay as they are.
    pub(crate) alerts: Option<Option<Target>>,
}

impl Form for ClientPatch {
    fn note_faults(self, _: DateTime<Utc>, errors: &mut FieldErrors) {
        self.check(errors);
    }
}

impl ClientPatch {
    /// Checks every field; `None` when one is wrong, and then `errors` says which.
    pub(crate) fn check(&self, errors: &mut FieldErrors) -> Option<CheckedClientPatch> {
        let patterns = self.allowed_targets.as_ref().map(|listed| check_patterns(listed, errors));
        let defaults = self.defaults.as_ref().map(|defaults| defaults.check(errors));
        let quotas = self.quotas.as_ref().map(|quotas| quotas.check(errors));
        let alerts = self.alerts.as_ref().map(|alerts| check_alerts(alerts.as_ref(), errors));
        let (allowed_targets, defaults, quotas) = (given(patterns)?, given(defaults)?, given(quotas)?);
        Some(CheckedClientPatch { allowed_targets, defaults, quotas, alerts: given(alerts)? })
    }
}

impl Form for ClientBody {
    fn note_faults(self, _: DateTime<Utc>, errors: &mut FieldErrors) {
        self.check(errors);
    }
}

impl ClientBody {
    /// Checks every field; `None` when one is wrong, and then `errors` says which.
    pub(crate) fn check(self, errors: &mut FieldErrors) -> Option<CheckedClient> {
        let id = errors.keep("client_id", &*self.client_id, self.client_id.parse());
        let patterns = given(self.allowed_targets.as_ref().map(|listed| check_patterns(listed, errors)));
        let (defaults, quotas) = (self.defaults.check(errors), self.quotas.check(errors));
        let alerts = check_alerts(self.alerts.as_ref(), errors);
        let (defaults, quotas) = (defaults?, quotas?);
        Some(CheckedClient { id: id?, allowed_targets: patterns?, defaults, quotas, alerts: alerts? })
    }
}

fn check_alerts(alerts: Option<&TargetBody>, errors: &mut FieldErrors) -> Option<Option<Target>> {
    given(alerts.map(|target| target::check_untokened(target, "alerts", errors)))
}

fn check_patterns(patterns: &[String], errors: &mut FieldErrors) -> Option<Vec<String>> {
    let listed = patterns.len();
    let mut is_right = listed <= ALLOWED_TARGETS;
    if !is_right {
        let message = format!(
            "allowed_targets holds {listed} patterns; {ALLOWED_TARGETS} is the most (one '*' alone allows all)"
        );
        errors.add("allowed_targets", (), message);
    }
    for (index, pattern) in patterns.iter().enumerate() {
        if let Some(fault) = pattern_fault(pattern) {
            let field = format!("allowed_targets[{index}]");
            errors.add(&*field, &**pattern, format!("{field} {fault}"));
            is_right = false;
        }
    }
    is_right.then(|| patterns.to_vec())
}

/// How a webhook secret is replaced.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RotateBody {
    /// For how long calls are signed with the former secret as well, in seconds. 0, when somebody else may know it.
    #[schema(value_type = Option<u32>, default = json!(KeptSeconds::DEFAULT.get()))]
    keep_seconds: Option<Number<KeptSeconds>>,
}

bounded_fields!(RotateBody: keep_seconds);

impl Form for RotateBody {
    fn note_faults(self, _: DateTime<Utc>, errors: &mut FieldErrors) {
        self.check(errors);
    }
}

impl RotateBody {
    /// For how long; `None` when it is wrong, and then `errors` says so.
    pub(crate) fn check(&self, errors: &mut FieldErrors) -> Option<KeptSeconds> {
        check_given(self.keep_seconds, errors).map(|given| given.unwrap_or(KeptSeconds::DEFAULT))
    }
}

/// Why a client is suspended.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"because": "its jobs call a host that is not its own"}))]
pub(crate) struct SuspendBody {
    /// Why, for those whose calls are refused: at most 200 bytes.
    #[schema(value_type = String, min_length = 1)]
    because: Text<CLOSED_BECAUSE_BYTES>,
}

bounded_fields!(SuspendBody: because);

impl Form for SuspendBody {
    fn note_faults(self, _: DateTime<Utc>, errors: &mut FieldErrors) {
        self.check(errors);
    }
}

impl SuspendBody {
    /// Why; `None` when it is empty or too long, and then `errors` says so.
    pub(crate) fn check(&self, errors: &mut FieldErrors) -> Option<String> {
        if self.because.is_empty() {
            errors.add("because", "", "because is empty; say why, for those whose calls are refused");
            return None;
        }
        self.because.check("because", errors)
    }
}

/// What is wrong with a pattern of targets, if anything is.
pub(crate) fn pattern_fault(pattern: &str) -> Option<String> {
    if pattern.is_empty() {
        return Some("is empty; give a URL or an ARN, with '*' for the part that may vary".to_owned());
    }
    if pattern.len() > TARGET_URL_BYTES {
        return Some(format!("is {} bytes long; {TARGET_URL_BYTES} is the most", pattern.len()));
    }
    if pattern.matches('*').count() > 1 {
        return Some(format!("is '{pattern}', which has more than one '*'; list several patterns instead"));
    }
    let covers_an_address = ["https://", "http://", "arn:"].iter().any(|scheme| {
        let head = pattern.split('*').next().unwrap_or_default();
        head.starts_with(scheme) || (pattern.contains('*') && scheme.starts_with(head))
    });
    (!covers_an_address).then(|| {
        format!("is '{pattern}', which no address matches; begin with https:// or http:// or arn: or '*'")
    })
}

/// A client as it is answered.
pub(crate) fn view(client: &Client) -> ClientView {
    ClientView {
        client_id: client.id.to_string(),
        revision: client.revision,
        allowed_targets: client.allowed_targets.clone(),
        defaults: protocol::JobDefaults {
            retry: client.defaults.retry.as_ref().map(retry_view),
            max_attempts: client.defaults.max_attempts.map(|most| most.get().into()),
            relevancy_seconds: client.defaults.relevancy.map(Relevancy::seconds),
            history: client.defaults.history.map(history_view),
            history_days: client.defaults.history_days.map(|days| days.get().into()),
        },
        quotas: quota::view(&client.quotas),
        alerts: client.alerts.as_ref().map(|told| target::view(told, false)),
        suspended: client.suspended.as_ref().map(|suspended| protocol::Suspension {
            since: DateTime::from_timestamp_millis(suspended.since_ms).map(instant).unwrap_or_default(),
            because: suspended.because.clone(),
        }),
        deleting: client.deleting.as_ref().map(deletion_view),
        created_at: instant(client.created_at),
    }
}

fn deletion_view(deletion: &Deletion) -> protocol::ClientDeletion {
    protocol::ClientDeletion {
        since: DateTime::from_timestamp_millis(deletion.since_ms).map(instant).unwrap_or_default(),
        stage: match deletion.stage {
            Stage::Index => DeletionStage::Index,
            Stage::Jobs => DeletionStage::Jobs,
            Stage::Policies => DeletionStage::Policies,
            Stage::Runs => DeletionStage::Runs,
            Stage::Events => DeletionStage::Events,
            Stage::Client => DeletionStage::Client,
        },
        removed: deletion.removed,
    }
}
