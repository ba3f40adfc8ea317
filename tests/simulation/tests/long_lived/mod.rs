//! Rows live long: what a newer version stored is kept, and what cannot be read keeps nothing else waiting.

mod finished;
mod kept;
mod line;
mod sent;
mod stage;
mod swept;
