//! Calls end in time: what can grow asks whether their time is over and leaves the rest to others, and what lies in many rows
//! is read and written with many requests under way (decision 0038).

mod at_once;
mod left;
mod stage;
