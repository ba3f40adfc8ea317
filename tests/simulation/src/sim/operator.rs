//! The operator of a history, who redrives dead letters, and discards some. At the end of the history the queues are there that
//! were missing, and whatever can be redriven must arrive.

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::Result;
use chrono::Duration;
use tidegate_domain::ids::{ClientId, EventId};
use tidegate_engine::{DeadLetterFilter, Engine, EngineError, Redriven};
use tidegate_store::dead_letters::DeadLetter;

use super::checkers::i2_nothing_lost;
use super::coverage::CoveredFault;
use super::history::History;
use super::letters::{Answers, Operator, locked};
use super::mix;
use super::processes::{About, Call, Done};
use super::setup::{MISSING, is_refused};

impl History {
    /// The operator looks at some letters of a client, now and then.
    pub(crate) fn operate(&mut self) {
        let Some(Operator { dice, discarded, .. }) = &self.stage.operator else { return };
        let (discarded, chaos) = (Arc::clone(discarded), Arc::clone(&self.stage.chaos));
        let Some(client) = dice.pick(&self.model.clients).filter(|_| dice.chance(mix::OPERATES)).cloned()
        else {
            return;
        };
        let (discards, few) = (dice.chance(mix::DISCARDS), dice.within(mix::LETTERS) as usize);
        let wait = Duration::seconds(dice.within(mix::REDRIVEN_AFTER) as i64);
        let (process, engine) = self.process();
        let call =
            Call { process, name: format!("an operator of {client}"), about: About::Nobody, seconds: 29 };
        let at = engine.clock().now() + wait;
        self.begin(call, async move {
            let letters = match all(&engine, &client, few).await {
                Ok(letters) => letters.into_iter().map(|letter| letter.event).collect::<Vec<_>>(),
                Err(error) => return Done::Operated { client, redrives: Err(error) },
            };
            if discards {
                letters.iter().for_each(|_| chaos.count(CoveredFault::Discarded));
                locked(&discarded).extend(letters.iter().map(|event| (client.clone(), event.clone())));
                let _told_or_not = engine.dead_letters().discard(&client, &letters).await;
                return Done::Operated { client, redrives: Ok(Vec::new()) };
            }
            let redrives = letters.iter().map(|event| (event.clone(), at)).collect::<Vec<_>>();
            let answers = engine.dead_letters().redrive(&client, &redrives).await;
            Done::Operated { client, redrives: Ok(letters.into_iter().zip(answers).collect()) }
        });
    }

    /// Takes note of what an operator was told.
    pub(crate) fn operated(&mut self, client: &ClientId, answers: Answers) {
        let Some(operator) = &mut self.stage.operator else { return };
        for (event, answer) in answers {
            match answer {
                Ok(Redriven::Done) => {
                    self.stage.chaos.count(CoveredFault::Redriven);
                    operator.redriven.insert((client.clone(), event));
                }
                Ok(Redriven::Absent) | Err(_) => {}
                Ok(_) => drop(operator.refused.insert((client.clone(), event))),
            }
        }
    }

    /// The queues that were missing are there from now on.
    pub(crate) async fn create_what_is_missing(&mut self) -> Result<()> {
        for url in self.stage.queue_urls.clone() {
            let name = url.rsplit('/').next().unwrap_or_default();
            let missing = self.stage.deployment.queue(&format!("{name}-{MISSING}")).await?;
            self.stage.queue_urls.push(missing);
        }
        Ok(())
    }

    /// Redrives all that is dead. Whether there was anything.
    pub(crate) async fn redrive_all(&mut self) -> Result<bool> {
        let (engine, now, mut any) = (self.engines[0].clone(), self.now(), false);
        for client in self.model.clients.clone() {
            let letters = all(&engine, &client, usize::MAX).await?;
            let events: Vec<_> = letters.into_iter().map(|letter| (letter.event, now)).collect();
            let answers = engine.dead_letters().redrive(&client, &events).await;
            for ((event, _), answer) in events.into_iter().zip(answers) {
                let redriven = answer?;
                any |= redriven == Redriven::Done;
                self.note(format!("an operator redrives {event}: {redriven:?}"));
                self.operated(&client, vec![(event, Ok(redriven))]);
            }
        }
        Ok(any)
    }

    /// Holds that what was redriven has arrived, or is dead once more where nothing can take it, or was stopped.
    pub(crate) async fn all_redriven_came(&self) -> Result<()> {
        let (engine, Some(operator)) = (&self.engines[0], &self.stage.operator) else { return Ok(()) };
        for client in self.model.clients.clone() {
            let letters = all(engine, &client, usize::MAX).await?;
            let dead: BTreeSet<EventId> = letters.into_iter().map(|letter| letter.event).collect();
            let redriven = operator.redriven.iter().filter(|(of, _)| *of == client);
            for event in redriven.map(|(_, event)| event).chain(&dead) {
                let Some(run) = self.stage.store.find_run(&client, event.run()).await? else { continue };
                let is_settled = operator.refused.contains(&(client.clone(), event.clone()))
                    || operator.has_discarded(&client, event);
                let is_poison = dead.contains(event) && is_refused(&run.terms.target);
                if run.stopped.is_some() || is_settled || is_poison {
                    continue;
                }
                let has_come =
                    self.model.delivered.get(&client).is_some_and(|ids| ids.contains(&event.to_string()));
                i2_nothing_lost::came(event, has_come, dead.contains(event))?;
            }
        }
        Ok(())
    }
}

/// The dead letters of a client, up to a number.
pub(crate) async fn all(
    engine: &Engine,
    client: &ClientId,
    most: usize,
) -> Result<Vec<DeadLetter>, EngineError> {
    let (mut letters, mut after) = (Vec::new(), None);
    loop {
        let page = engine.dead_letters().list(client, &DeadLetterFilter::default(), after).await?;
        letters.extend(page.rows);
        after = page.next;
        if after.is_none() || letters.len() >= most {
            letters.truncate(most);
            return Ok(letters);
        }
    }
}
