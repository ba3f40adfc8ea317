//! What a run of the benchmark is asked for.

use anyhow::{Context, Result, bail, ensure};

use crate::peers::names;

const ROUNDS: usize = 3;

/// The arguments after `bench peers`.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Tiny counts, one round, and what must hold at any speed is asserted.
    pub quick: bool,
    /// Also what takes minutes: jobs that are created five minutes ahead, and two minutes of steady load.
    pub far: bool,
    /// Whether the table replaces the one in `docs/benchmarks.md`.
    pub write: bool,
    /// How often each work is played on each system; medians are printed.
    pub rounds: usize,
    /// The systems and works that were named; all when none of a kind was.
    only: Vec<String>,
}

impl Options {
    /// # Errors
    /// When an argument is not known.
    pub fn read(arguments: &[String]) -> Result<Self> {
        let mut options = Self { quick: false, far: false, write: false, rounds: 0, only: Vec::new() };
        let mut left = arguments.iter();
        while let Some(argument) = left.next() {
            match argument.as_str() {
                "--quick" => options.quick = true,
                "--far" => options.far = true,
                "--write" => options.write = true,
                "--rounds" => {
                    let rounds = left.next().context("--rounds needs a number")?;
                    options.rounds =
                        rounds.parse().with_context(|| format!("--rounds {rounds}: no number"))?;
                    ensure!(options.rounds > 0, "--rounds 0 plays nothing");
                }
                "--only" => {
                    let names = left.next().context("--only needs names of systems or works")?;
                    options.only.extend(names.split(',').map(str::to_owned));
                }
                unknown => bail!("bench peers knows no {unknown:?}"),
            }
        }
        for name in &options.only {
            let (systems, works) = (&names::SYSTEMS, &names::WORKS);
            let known = systems.contains(&name.as_str()) || works.contains(&name.as_str());
            ensure!(known, "--only {name}: no system of {systems:?} and no work of {works:?}");
        }
        ensure!(!(options.quick && options.write), "--quick measures nothing that is worth writing");
        if options.rounds == 0 {
            options.rounds = if options.quick { 1 } else { ROUNDS };
        }
        Ok(options)
    }

    /// Whether `name` is to be played, which is one of `kind`. Tidegate always is: the others are compared with it.
    pub fn plays(&self, name: &str, kind: &[&str]) -> bool {
        let mut of_kind = self.only.iter().filter(|only| kind.contains(&only.as_str())).peekable();
        name == names::TIDEGATE || of_kind.peek().is_none() || of_kind.any(|only| only == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Options> {
        Options::read(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn rounds_are_three_unless_said_otherwise() {
        assert_eq!(read("").unwrap().rounds, 3);
        assert_eq!(read("--quick").unwrap().rounds, 1);
        assert_eq!(read("--rounds 2 --far").unwrap().rounds, 2);
    }

    #[test]
    fn names_of_one_kind_leave_the_other_kind_alone() {
        let options = read("--only bullmq,steady").unwrap();
        assert!(options.plays("bullmq", &names::SYSTEMS) && options.plays("tidegate", &names::SYSTEMS));
        assert!(!options.plays("pg_boss", &names::SYSTEMS));
        assert!(options.plays("steady", &names::WORKS) && !options.plays("batch", &names::WORKS));
        assert!(read("--only bullmq").unwrap().plays("batch", &names::WORKS));
    }

    #[test]
    fn what_is_not_known_is_refused() {
        for line in ["--fast", "--rounds", "--rounds 0", "--rounds two", "--only sidekiq", "--quick --write"]
        {
            assert!(read(line).is_err(), "{line}");
        }
    }
}
