//! Which benchmarks there are, and which of them the command line asks for.

use anyhow::{Context, Result, bail};
use tidegate_runtime::{Options, Place, Runtime};
use tokio::runtime::{Builder, Runtime as Tokio};

use crate::{Row, buckets, creates, emission, herd, idle, idle_policy, latency, memory, throttled};

/// One benchmark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Section {
    Herd,
    Throttled,
    Buckets,
    IdlePolicy,
    Emission,
    Memory,
    Idle,
    Creates,
    Latency,
}

/// What the command line asks for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) sections: Vec<Section>,
    /// `None`: each section's own.
    pub(crate) size: Option<u32>,
}

impl Asked {
    pub(crate) fn read(mut arguments: impl Iterator<Item = String>) -> Result<Self> {
        let Some(name) = arguments.next() else {
            return Ok(Self { sections: Section::ALL.to_vec(), size: None });
        };
        let names = || Section::ALL.map(Section::name).join("|");
        let section = Section::ALL.into_iter().find(|section| section.name() == name);
        let section =
            section.with_context(|| format!("no benchmark is called {name:?}: [{}] [N]", names()))?;
        let size = arguments.next().map(|text| text.parse()).transpose().context("N is no number")?;
        if let Some(more) = arguments.next() {
            bail!("{more:?} is one argument too many: [{}] [N]", names());
        }
        Ok(Self { sections: vec![section], size })
    }
}

impl Section {
    const ALL: [Self; 9] = [
        Self::Herd,
        Self::Throttled,
        Self::Buckets,
        Self::IdlePolicy,
        Self::Emission,
        Self::Memory,
        Self::Idle,
        Self::Creates,
        Self::Latency,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Herd => "herd",
            Self::Throttled => "throttled",
            Self::Buckets => "buckets",
            Self::IdlePolicy => "idle-policy",
            Self::Emission => "emission",
            Self::Memory => "memory",
            Self::Idle => "idle",
            Self::Creates => "creates",
            Self::Latency => "latency",
        }
    }

    /// Events, jobs, occurrences or the tokens of the largest policy when nobody says.
    fn usual_size(self) -> u32 {
        match self {
            Self::Herd => 20_000,
            Self::Throttled => 10_000,
            Self::Latency => 4_000,
            Self::Buckets | Self::IdlePolicy => 10_000,
            Self::Emission | Self::Creates => 100_000,
            Self::Memory | Self::Idle => 1_000_000,
        }
    }

    /// Measures. What is given per core runs on one.
    pub(crate) fn run(self, size: Option<u32>) -> Result<Vec<Row>> {
        let size = size.unwrap_or(self.usual_size());
        match self {
            Self::Herd => all_cores()?.block_on(in_both_places(Self::Herd, size)),
            Self::Throttled => all_cores()?.block_on(in_both_places(Self::Throttled, size)),
            Self::Latency => all_cores()?.block_on(in_both_places(Self::Latency, size)),
            Self::Buckets => one_core()?.block_on(buckets::run(size)),
            Self::IdlePolicy => one_core()?.block_on(idle_policy::run(size)),
            Self::Emission => one_core()?.block_on(emission::run(size)),
            Self::Memory => one_core()?.block_on(memory::run(size)),
            Self::Idle => one_core()?.block_on(idle::run(size)),
            Self::Creates => all_cores()?.block_on(creates::run(size)),
        }
    }
}

fn all_cores() -> Result<Tokio> {
    Ok(Builder::new_multi_thread().enable_all().build()?)
}

fn one_core() -> Result<Tokio> {
    Ok(Builder::new_current_thread().enable_all().build()?)
}

/// As `tidegate local` runs it, first in memory and then in a folder.
async fn in_both_places(section: Section, size: u32) -> Result<Vec<Row>> {
    let folder = tempfile::tempdir()?;
    let places = [("in memory", Place::Memory), ("in a folder", Place::Folder(folder.path().to_owned()))];
    let mut rows = Vec::new();
    for (name, place) in places {
        let runtime = Runtime::start(Options::new(place)).await?;
        let measured = match section {
            Section::Throttled => throttled::run(&runtime, size).await?,
            Section::Latency => latency::run(&runtime, size).await?,
            _ => herd::run(&runtime, size).await?,
        };
        runtime.stop().await;
        rows.extend(measured.into_iter().map(|(what, result)| (format!("{name}: {what}"), result)));
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(arguments: &[&str]) -> Result<Asked> {
        Asked::read(arguments.iter().map(ToString::to_string))
    }

    #[test]
    fn the_command_line_names_a_benchmark_and_its_size() {
        assert_eq!(read(&[]).unwrap().sections, Section::ALL);
        assert_eq!(read(&["idle"]).unwrap(), Asked { sections: vec![Section::Idle], size: None });
        let emission = Asked { sections: vec![Section::Emission], size: Some(5_000) };
        assert_eq!(read(&["emission", "5000"]).unwrap(), emission);
    }

    #[test]
    fn what_is_not_understood_is_refused_with_the_names() {
        for wrong in [&["speed"][..], &["5000"], &["idle", "many"], &["idle", "1", "2"]] {
            assert!(read(wrong).is_err(), "{wrong:?}");
        }
        assert!(read(&["speed"]).unwrap_err().to_string().contains("herd|throttled|buckets"));
    }
}
