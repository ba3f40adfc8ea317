//! Whoever sidelines jobs and clients of a history, and drains them. At the end everything drains, and must arrive.

use std::sync::Arc;

use anyhow::Result;
use tidegate_domain::ids::{ClientId, JobId};
use tidegate_domain::retry::RedrivePace;
use tidegate_domain::sideline::SidelineOf;
use tidegate_engine::Sidelined;

use super::coverage::CoveredFault;
use super::history::History;
use super::mix;
use super::model::JobModel;
use super::processes::{About, Call, Done};

/// Events of a run of a job that is sidelined, at the most.
const MOST_EVENTS: u32 = 1_000;

impl History {
    /// Now and then a job or a client is sidelined, or drained: sooner than it is sidelined, so that no history stands still.
    pub(crate) fn sideline(&mut self) {
        let Some(dice) = &self.stage.sidelines else { return };
        if !dice.chance(mix::SIDELINES) {
            return;
        }
        // A million events would be set aside one by one.
        let is_endless = |job: &JobModel| {
            job.revisions.iter().any(|revision| revision.job.terms.count.get() > MOST_EVENTS)
        };
        let of_job = |job: &JobModel| Some((job.client.clone(), job.id.clone()?));
        let jobs: Vec<(ClientId, JobId)> =
            self.model.jobs.iter().filter(|job| !is_endless(job)).filter_map(of_job).collect();
        let Some((client, job)) = dice.pick(&jobs).cloned() else { return };
        let of = if dice.chance(mix::WHOLE_CLIENT) { SidelineOf::Client } else { SidelineOf::Job(job) };
        let pace = (!dice.chance(mix::HOLDS)).then(|| dice.within(mix::PACE));
        let (process, engine) = self.process();
        let name = format!("{of:?} of {client} is sidelined, or drains at {pace:?}");
        let chaos = Arc::clone(&self.stage.chaos);
        let call = Call { process, name, about: About::Nobody, seconds: 29 };
        self.begin(call, async move {
            let done = match pace.and_then(|pace| RedrivePace::new(pace).ok()) {
                Some(pace) => engine.sidelining().drain(&client, &of, pace).await,
                None => engine.sidelining().sideline(&client, &of, "").await.map(|sidelined| {
                    if sidelined == Sidelined::Done {
                        chaos.count(CoveredFault::Sidelined);
                    }
                }),
            };
            Done::Operated { client, redrives: done.map(|()| Vec::new()) }
        });
    }

    /// Whatever is sidelined drains from now on.
    pub(crate) async fn drain_all(&mut self) -> Result<()> {
        if self.stage.sidelines.is_none() {
            return Ok(());
        }
        let (engine, pace) = (self.engines[0].clone(), RedrivePace::new(*mix::PACE.end())?);
        for client in self.model.clients.clone() {
            let sidelines = engine.sidelining().find(&client).await?;
            let jobs = sidelines.jobs.into_keys().map(SidelineOf::Job);
            for of in jobs.chain([SidelineOf::Client]) {
                engine.sidelining().drain(&client, &of, pace).await?;
                self.note(format!("{of:?} of {client} drains"));
            }
        }
        Ok(())
    }
}
