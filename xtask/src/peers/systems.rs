//! The systems that are compared.

use crate::peers::names;

/// A system, in the order of the table's columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum System {
    /// `tidegate local`.
    Tidegate,
    /// BullMQ on Redis.
    BullMq,
    /// pg-boss on PostgreSQL.
    PgBoss,
    /// graphile-worker on PostgreSQL.
    GraphileWorker,
}

impl System {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Tidegate, Self::BullMq, Self::PgBoss, Self::GraphileWorker];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        names::SYSTEMS[self as usize]
    }

    /// Its name in the table.
    pub fn title(self) -> &'static str {
        match self {
            Self::Tidegate => "Tidegate",
            Self::BullMq => "BullMQ",
            Self::PgBoss => "pg-boss",
            Self::GraphileWorker => "graphile-worker",
        }
    }

    /// Its package in `tests/bench/peers/package.json`; ours has none.
    pub fn package(self) -> Option<&'static str> {
        match self {
            Self::Tidegate => None,
            Self::BullMq => Some("bullmq"),
            Self::PgBoss => Some("pg-boss"),
            Self::GraphileWorker => Some("graphile-worker"),
        }
    }
}
