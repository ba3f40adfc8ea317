//! Panics, counted wherever they happen: one that something caught is a fault as well.

use std::backtrace::Backtrace;
use std::cell::{Cell, RefCell};
use std::panic::{self, PanicHookInfo};
use std::sync::{Mutex, Once, PoisonError};

/// A panic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Panic {
    /// File and line of the innermost call in this workspace; where there is none, of the panic itself.
    pub place: String,
    /// What it said.
    pub message: String,
}

thread_local! {
    /// Whether this thread plays a round, which looks after the panics of its thread.
    static PLAYS: Cell<bool> = const { Cell::new(false) };
    static SEEN_HERE: RefCell<Vec<Panic>> = const { RefCell::new(Vec::new()) };
}

/// Panics of threads that play no round themselves.
static SEEN_ELSEWHERE: Mutex<Vec<Panic>> = Mutex::new(Vec::new());
static COUNTING: Once = Once::new();

/// From now on counts the panics of this process, in place of telling of them.
pub fn count() {
    PLAYS.set(true);
    COUNTING.call_once(|| {
        let tell = panic::take_hook();
        panic::set_hook(Box::new(move |info| if is_of_a_test(info) { tell(info) } else { note(info) }));
    });
}

/// The panics since the last call.
pub fn taken() -> Vec<Panic> {
    let mut seen = SEEN_HERE.take();
    seen.append(&mut SEEN_ELSEWHERE.lock().unwrap_or_else(PoisonError::into_inner));
    seen
}

fn note(info: &PanicHookInfo<'_>) {
    let seen = Panic::from(info);
    match PLAYS.get() {
        true => SEEN_HERE.with_borrow_mut(|all| all.push(seen)),
        false => SEEN_ELSEWHERE.lock().unwrap_or_else(PoisonError::into_inner).push(seen),
    }
}

/// A test of this suite fails by panicking.
fn is_of_a_test(info: &PanicHookInfo<'_>) -> bool {
    info.location().is_some_and(|place| place.file().starts_with("tests/fuzz"))
}

impl From<&PanicHookInfo<'_>> for Panic {
    fn from(info: &PanicHookInfo<'_>) -> Self {
        let itself = || info.location().map(|place| format!("{}:{}", place.file(), place.line()));
        let place = innermost_call().or_else(itself);
        let message = info.payload_as_str().unwrap_or("without a text").to_owned();
        Self { place: place.unwrap_or_default(), message }
    }
}

/// A constructor of a library says where it stands, and not who called it.
fn innermost_call() -> Option<String> {
    let calls = Backtrace::force_capture().to_string();
    let places = calls.lines().filter_map(|line| line.trim().strip_prefix("at "));
    let ours = places.filter_map(|place| place.find("shared/").map(|from| place[from..].to_owned()));
    ours.map(|place| place.rsplit_once(':').map_or(place.clone(), |(line, _)| line.to_owned())).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_counted_although_it_is_caught() {
        count();
        let texts = std::hint::black_box(usize::MAX);
        assert!(panic::catch_unwind(|| "ab".repeat(texts)).is_err());
        assert_eq!(
            taken().iter().map(|panic| panic.message.as_str()).collect::<Vec<_>>(),
            ["capacity overflow"]
        );
        assert_eq!(taken(), []);
    }
}
