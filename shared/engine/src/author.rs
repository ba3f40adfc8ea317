//! Who is behind what the engine is asked for: known to whoever takes a call, and recorded with each change that it makes.
//!
//! It goes with the task that a call is answered by, and not through the arguments of every function. What is spawned does not know
//! it, and neither does what no call is behind: a tick, a message, a test.

use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

use chrono::{DateTime, Utc};
use tidegate_domain::change::{Author, Change, What};
use tidegate_domain::job::HistoryDays;

tokio::task_local! {
    static AUTHOR: Mutex<Author>;
}

/// Does the work of a call that came from an address, if that is known.
pub async fn called_from<T>(from: Option<IpAddr>, work: impl Future<Output = T>) -> T {
    AUTHOR.scope(Mutex::new(Author { from, ..Author::default() }), work).await
}

/// Says who makes the call that is being answered, by the name of a key or as [`Author::ADMIN`], and for how long its client
/// wants to know what happened. Outside of a call it says nothing.
pub fn called_by(by: &str, history_days: HistoryDays) {
    let _no_call = AUTHOR.try_with(|author| {
        let mut author = author.lock().unwrap_or_else(PoisonError::into_inner);
        author.by = Some(by.to_owned());
        author.history_days = history_days;
    });
}

/// A change that is made at an instant by whoever is behind the call that is being answered.
pub fn change(what: What, at: DateTime<Utc>) -> Change {
    let author = AUTHOR.try_with(|author| author.lock().unwrap_or_else(PoisonError::into_inner).clone());
    Change { what, author: author.unwrap_or_default(), at }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn each_call_has_its_own_author_and_what_is_outside_of_one_has_none() {
        let by = |name: &'static str, address: &'static str| {
            called_from(address.parse().ok(), async move {
                called_by(name, HistoryDays::DEFAULT);
                tokio::task::yield_now().await;
                change(What::Changed, DateTime::UNIX_EPOCH).author
            })
        };
        let (first, second) = tokio::join!(by("first", "203.0.113.7"), by("second", "2001:db8::1"));
        assert_eq!((first.by.as_deref(), first.from), (Some("first"), "203.0.113.7".parse().ok()));
        assert_eq!((second.by.as_deref(), second.from), (Some("second"), "2001:db8::1".parse().ok()));
        called_by("nobody", HistoryDays::DEFAULT);
        assert_eq!(change(What::Changed, DateTime::UNIX_EPOCH).author, Author::default());
    }
}
