//! Emission gets on however little time its calls have: what does not fit into one is done by others, and no client's
//! herd keeps another's launches waiting (I2, I3, I9).
//!
//! Requests take time here, in a clock of their own, and each call of the emitter's function is cut off without a word.

mod aside;
mod herd;
mod killed;
mod stage;
mod timeline;
