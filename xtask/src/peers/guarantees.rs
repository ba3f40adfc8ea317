//! What each system promises, beside which its speed has to be read.

use crate::peers::systems::System;

/// The columns of the table of promises, after the system's name.
pub const COLUMNS: [&str; 4] = [
    "durable after `kill -9` of the server",
    "durable after a power cut",
    "limit held after a kill of a worker",
    "at least once",
];

impl System {
    /// A cell for each of [`COLUMNS`], as the system is set here.
    pub fn guarantees(self) -> [&'static str; 4] {
        match self {
            Self::Tidegate | Self::TidegateRust => [
                "yes",
                "all but the last moments: no sync for each write (on AWS, and with `--synchronous`, yes)",
                "yes: a token is held until its lease ends",
                "yes, up to `max_attempts` deliveries, which are recorded",
            ],
            Self::BullMq => [
                "yes, unless a sync of the file was late",
                "all but the last second",
                "yes: a job is active until it is found stalled, after 30 s",
                "yes; a job that stalls twice fails",
            ],
            Self::PgBoss => [
                "yes",
                "yes",
                "as long as fetches do not run at once: those can exceed it together",
                "yes; after 15 minutes, up to 2 retries",
            ],
            Self::GraphileWorker => [
                "yes",
                "yes",
                "no: the limit is of one process, and nothing holds over several",
                "yes; after 4 hours, up to 25 attempts",
            ],
        }
    }
}
