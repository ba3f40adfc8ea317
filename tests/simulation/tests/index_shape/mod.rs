//! The shape of the time index while everything runs: shards are raised, zones come and go, a large scan is worked on in
//! parts, a crowded minute is spread (I2, I3, I6).

mod instants;
mod parts;
mod shards;
mod zones;
