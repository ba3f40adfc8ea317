//! Packs that lines and slot groups know, and that have no row: the table of runs is older than that of policies.

use tidegate_domain::ids::{ClientId, RunId};
use tidegate_domain::job::Job;
use tidegate_domain::limits::HISTORY_DAYS;
use tidegate_domain::occurrence::Occurrence;
use tidegate_domain::pack::{PackId, SinglesId};
use tidegate_domain::policy::PolicyRef;
use tidegate_domain::time::{days, shifted};
use tidegate_store::jobs::JobRow;
use tidegate_store::launch::Child;
use tidegate_store::runs::RunRow;

use super::RepairError;
use super::known::Known;
use super::report::FindingKind;
use super::session::Session;
use super::spans::Spans;

impl Session<'_> {
    /// Looks at what no row of the table of runs stands for.
    pub(super) async fn look_at_orphans(&self, known: &Known) -> Result<(), RepairError> {
        let look = async |(policy, pack, open): (PolicyRef, PackId, Spans)| match &pack {
            PackId::Run(_) if open.is_empty() => Ok(()),
            PackId::Run(run) => self.look_at_orphaned_run(known, policy, run, &open).await,
            PackId::Singles(id) => self.look_at_orphaned_pack(known, policy, *id, &open).await,
        };
        self.look_at_each(known.take_rest().into_iter().map(look)).await.map(drop)
    }

    /// A run is what its job said at that revision. Where that is not known any more, its events are let go.
    async fn look_at_orphaned_run(
        &self,
        known: &Known,
        policy: PolicyRef,
        run: &RunId,
        open: &Spans,
    ) -> Result<(), RepairError> {
        let client = policy.client.clone();
        if run.launch_at() < shifted(self.now, -days(HISTORY_DAYS - 1)) {
            let detail = format!("its row has expired, and {} events are open", open.count());
            self.found(FindingKind::RunTooOld, &client, run, detail);
            return Ok(());
        }
        let Some(occurrence) = self.occurrence_of(&client, run).await? else {
            let detail = format!("{} events of policy {} are let go", open.count(), policy.policy);
            self.found(FindingKind::RunUnknown, &client, run, detail);
            return self.let_go(known, policy, PackId::Run(run.clone())).await;
        };
        self.found(FindingKind::RunMadeAgain, &client, run, "");
        if self.apply {
            self.store.create_run(&occurrence, self.now).await?;
        }
        known.give_back(&policy, &PackId::Run(run.clone()), open.clone());
        let (row, name) = (RunRow::waiting(&occurrence), policy.policy.clone());
        self.look_at_run(known, &client, name, &row, self.now).await
    }

    /// Who is in a pack is known from its row alone. It is emitted again, under the same number perhaps, so nothing may stay
    /// of this one.
    async fn look_at_orphaned_pack(
        &self,
        known: &Known,
        policy: PolicyRef,
        id: SinglesId,
        open: &Spans,
    ) -> Result<(), RepairError> {
        let comes_again = id.kind.minute.saturating_mul(60) >= self.back_to.timestamp();
        let kind = if comes_again { FindingKind::PackLetGo } else { FindingKind::PackUnknown };
        if !open.is_empty() {
            let detail = format!("{} events of policy {} are let go", open.count(), policy.policy);
            self.found(kind, &policy.client, id, detail);
        }
        if self.apply {
            self.store.forget_history(&policy.client, &policy.policy, id).await?;
        }
        self.let_go(known, policy, PackId::Singles(id)).await
    }

    async fn let_go(&self, known: &Known, policy: PolicyRef, pack: PackId) -> Result<(), RepairError> {
        let (store, entries) = (self.store, known.entries_of(&policy, &pack));
        self.write_all(entries.iter().map(|line_key| store.drop_entry(&policy, line_key))).await?;
        known.let_go(policy, pack);
        Ok(())
    }

    async fn occurrence_of(&self, client: &ClientId, run: &RunId) -> Result<Option<Occurrence>, RepairError> {
        let job = match self.store.job(client, run.job()).await? {
            Some(JobRow::Live(job)) => Some(job),
            _ => self.store.one_time(client, run.job()).await?,
        };
        let job = job.filter(|job: &Job| job.revision == run.revision());
        Ok(job.map(|job| Child::of(&job).occurrence(run.launch_at())))
    }
}
