//! The systems that are compared.

use crate::peers::names;

/// A system, in the order of the table's columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum System {
    /// `tidegate local`, played in Node as the others are.
    Tidegate,
    /// `tidegate local`, played in Rust.
    TidegateRust,
    /// BullMQ on Redis.
    BullMq,
    /// pg-boss on PostgreSQL.
    PgBoss,
    /// graphile-worker on PostgreSQL.
    GraphileWorker,
}

impl System {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Tidegate, Self::TidegateRust, Self::BullMq, Self::PgBoss, Self::GraphileWorker];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        names::SYSTEMS[self as usize]
    }

    /// Its name in the table.
    pub fn title(self) -> &'static str {
        match self {
            Self::Tidegate => "Tidegate",
            Self::TidegateRust => "Tidegate (Rust)",
            Self::BullMq => "BullMQ",
            Self::PgBoss => "pg-boss",
            Self::GraphileWorker => "graphile-worker",
        }
    }

    /// Whether it is ours.
    pub fn is_ours(self) -> bool {
        matches!(self, Self::Tidegate | Self::TidegateRust)
    }

    /// Its package in `tests/bench/peers/package.json`; ours has none.
    pub fn package(self) -> Option<&'static str> {
        match self {
            Self::Tidegate | Self::TidegateRust => None,
            Self::BullMq => Some("bullmq"),
            Self::PgBoss => Some("pg-boss"),
            Self::GraphileWorker => Some("graphile-worker"),
        }
    }
}
