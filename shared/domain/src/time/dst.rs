//! What a job says about changes of the clocks.

/// What becomes of a local time that the clocks jump over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Gap {
    /// It launches at the first instant after the gap.
    NextValid,
    /// It does not launch.
    Skip,
}

/// What becomes of a local time that happens twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Overlap {
    /// It launches the first time.
    First,
    /// It launches both times.
    Both,
}

/// A job's rules. What it leaves open follows from its expression: a fixed-time one has `next_valid` and `first`, an
/// interval-like one `skip` and `both`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct DstRules {
    /// For times in a gap; `None`: as follows from the expression.
    pub gap: Option<Gap>,
    /// For times that happen twice; `None`: as follows from the expression.
    pub overlap: Option<Overlap>,
}
