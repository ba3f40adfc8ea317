//! What a repair reads and writes: whole tables, page by page, and rows that snapshots of different instants have left
//! apart. The engine decides what belongs together.
//!
//! Every page is read consistently. The writes of a repair are its own: nobody else is at work, and each is such that it may
//! be repeated.

mod index;
mod policies;
mod runs;
mod ticker;

pub use index::{IndexKind, IndexedRow};
pub use policies::{PolicyRow, PutBack, Taken};
pub use runs::StoredRun;
