//! Keeping a token while its event is worked on.

use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval};

use crate::{Client, Error, ExtendStatus};

/// Extends a token's lease, at once and then at each third of it, until dropped.
///
/// A beat that gets no answer is followed by another before the lease ends. Once the token is lost (its lease ended, or
/// it was released) the beats stop and [`Heartbeat::lost`] says so: another consumer may have the event by then.
///
/// ```no_run
/// # use std::time::Duration;
/// # use tidegate_client::{Client, Event, Heartbeat};
/// # async fn long_work() {}
/// # async fn consume(tidegate: &Client, event: &Event) -> Result<(), tidegate_client::Error> {
/// if let Some(token) = &event.token {
///     let mut heartbeat = Heartbeat::start(tidegate, token, Duration::from_secs(60));
///     tokio::select! {
///         () = long_work() => {
///             drop(heartbeat);
///             tidegate.release(&[token]).await?;
///         }
///         () = heartbeat.lost() => {} // give up: the event will come again
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Heartbeat {
    task: JoinHandle<()>,
    lost: watch::Receiver<bool>,
}

impl Heartbeat {
    /// Starts to extend `token` by `lease` (whole seconds, 10 at the least) at each beat. Needs a Tokio runtime, and
    /// panics without one, as `tokio::spawn` does.
    pub fn start(client: &Client, token: &str, lease: Duration) -> Self {
        let (client, token) = (client.clone(), token.to_owned());
        let lease_seconds = u32::try_from(lease.as_secs()).unwrap_or(u32::MAX).max(10);
        Self::beating(Duration::from_secs(lease_seconds.into()) / 3, move || {
            let (client, token) = (client.clone(), token.clone());
            async move {
                client
                    .extend(&[token], Some(lease_seconds))
                    .await
                    .map(|answer| answer.first().map(|a| a.status))
            }
        })
    }

    fn beating<F, A>(every: Duration, extend: F) -> Self
    where
        F: Fn() -> A + Send + 'static,
        A: Future<Output = Result<Option<ExtendStatus>, Error>> + Send + 'static,
    {
        let (losing, lost) = watch::channel(false);
        let task = tokio::spawn(async move {
            let mut beats = interval(every);
            beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                beats.tick().await;
                match extend().await {
                    Ok(Some(ExtendStatus::Extended)) => {}
                    // No answer, or one that may be different next time.
                    Err(error) if error.is_retryable() => {}
                    Ok(_) | Err(_) => break,
                }
            }
            let _ = losing.send(true);
        });
        Self { task, lost }
    }

    /// Whether the token is known to be lost.
    pub fn is_lost(&self) -> bool {
        *self.lost.borrow()
    }

    /// Waits until the token is known to be lost; for as long as it is held, that is forever.
    pub async fn lost(&mut self) {
        // The sender says true before it goes; without it the task was aborted, which only dropping does.
        let _ = self.lost.wait_for(|lost| *lost).await;
    }
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::time::{Instant, advance};

    use super::*;

    /// A heartbeat whose n-th extension is answered by `answer(n)`, and the number of its extensions.
    fn beating(
        answer: impl Fn(usize) -> Result<Option<ExtendStatus>, Error> + Send + 'static,
    ) -> (Heartbeat, Arc<AtomicUsize>) {
        let beats = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&beats);
        let heartbeat = Heartbeat::beating(Duration::from_secs(20), move || {
            let answered = answer(counted.fetch_add(1, Ordering::SeqCst));
            async move { answered }
        });
        (heartbeat, beats)
    }

    async fn settle() {
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn it_extends_at_once_and_at_each_third_until_dropped() {
        let (heartbeat, beats) = beating(|_| Ok(Some(ExtendStatus::Extended)));
        settle().await;
        assert_eq!(beats.load(Ordering::SeqCst), 1);
        for beat in 2..5 {
            advance(Duration::from_secs(20)).await;
            settle().await;
            assert_eq!(beats.load(Ordering::SeqCst), beat);
        }
        assert!(!heartbeat.is_lost());
        drop(heartbeat);
        advance(Duration::from_secs(60)).await;
        settle().await;
        assert_eq!(beats.load(Ordering::SeqCst), 4);
    }

    #[tokio::test(start_paused = true)]
    async fn a_lost_token_ends_it_and_is_told() {
        let (mut heartbeat, beats) =
            beating(|beat| Ok(Some(if beat < 2 { ExtendStatus::Extended } else { ExtendStatus::Expired })));
        let started = Instant::now();
        heartbeat.lost().await;
        assert!(heartbeat.is_lost());
        assert_eq!(started.elapsed(), Duration::from_secs(40));
        advance(Duration::from_secs(60)).await;
        settle().await;
        assert_eq!(beats.load(Ordering::SeqCst), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn a_beat_without_a_good_answer_is_followed_by_another() {
        let refused = |status: u16| {
            let problem = serde_json::from_value(serde_json::json!({"status": status})).unwrap();
            Err(Error::Refused(Box::new(problem)))
        };
        let (mut heartbeat, beats) = beating(move |beat| match beat {
            0 => refused(503),
            1 => Ok(Some(ExtendStatus::Extended)),
            _ => refused(401),
        });
        settle().await;
        advance(Duration::from_secs(20)).await;
        settle().await;
        assert_eq!((beats.load(Ordering::SeqCst), heartbeat.is_lost()), (2, false));
        heartbeat.lost().await;
        assert_eq!(beats.load(Ordering::SeqCst), 3);
    }
}
