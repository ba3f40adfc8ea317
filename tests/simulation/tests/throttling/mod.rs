//! What a policy promises, each promise by itself and without faults: limits, rates, weights, leases, the line, windows.

mod arrivals;
mod bulk;
mod fair;
mod history;
mod leases;
mod limits;
mod line;
mod out_of_time;
mod parts;
mod rates;
mod refills;
mod refused;
mod release_notes;
mod release_queue;
mod retained;
mod stage;
mod together;
mod windows;
