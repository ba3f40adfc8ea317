//! How long each step of a recipe took.

use std::fmt;
use std::time::{Duration, Instant};

use anyhow::Result;

/// Steps of a recipe, and how long they took.
#[derive(Default)]
pub struct Times(Vec<(&'static str, Duration)>);

impl Times {
    /// Does a step.
    ///
    /// # Errors
    /// When the step fails.
    pub fn take(&mut self, name: &'static str, step: impl FnOnce() -> Result<()>) -> Result<()> {
        let began = Instant::now();
        let done = step();
        self.0.push((name, began.elapsed()));
        done
    }
}

impl fmt::Display for Times {
    /// The longest step first, and the sum.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut steps = self.0.clone();
        steps.sort_by_key(|(_, took)| std::cmp::Reverse(*took));
        for (name, took) in steps {
            writeln!(f, "{:>8.1} s  {name}", took.as_secs_f64())?;
        }
        let all: Duration = self.0.iter().map(|(_, took)| *took).sum();
        writeln!(f, "{:>8.1} s  all of it", all.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_step_stands_first() {
        let times = Times(vec![("lints", Duration::from_secs(2)), ("tests", Duration::from_secs(30))]);
        let text = times.to_string();
        assert_eq!(
            text.lines().map(str::trim).collect::<Vec<_>>(),
            ["30.0 s  tests", "2.0 s  lints", "32.0 s  all of it"]
        );
    }
}
