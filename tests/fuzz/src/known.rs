//! What exists in a round's world, as far as answers and deliveries have told: ids and tokens that inputs may name.

use tidegate_simulation::sim::Dice;

/// How many of a kind are remembered; the oldest are forgotten.
const REMEMBERED: usize = 24;

/// Names of one kind.
#[derive(Debug, Clone, Default)]
pub struct Names(Vec<String>);

impl Names {
    /// Remembers one.
    pub fn learn(&mut self, name: &str) {
        if self.0.iter().any(|known| known == name) {
            return;
        }
        if self.0.len() == REMEMBERED {
            self.0.remove(0);
        }
        self.0.push(name.to_owned());
    }

    /// One of them; a name that nothing has when there is none.
    pub fn any(&self, dice: &Dice) -> String {
        dice.pick(&self.0).cloned().unwrap_or_else(|| "nobody".to_owned())
    }
}

/// What exists.
#[derive(Debug, Clone, Default)]
pub struct Known {
    /// Jobs of the client whose requests are drawn.
    pub jobs: Names,
    /// Its policies.
    pub policies: Names,
    /// Its calendars.
    pub calendars: Names,
    /// Its runs.
    pub runs: Names,
    /// Its events.
    pub events: Names,
    /// Tokens that it was given.
    pub tokens: Names,
    /// Cursors of its lists.
    pub cursors: Names,
    /// Its queue.
    pub queue_url: String,
    /// Scheme and host of the URLs of queues.
    pub queue_origin: String,
    /// An endpoint that answers.
    pub endpoint: String,
}

impl Known {
    /// An id of any kind.
    pub fn any_id(&self, dice: &Dice) -> String {
        let kinds = [&self.jobs, &self.policies, &self.calendars, &self.runs, &self.events];
        dice.pick(&kinds).map_or_else(String::new, |names| names.any(dice))
    }
}
