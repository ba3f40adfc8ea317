//! Work of calls that are made side by side: while one piece of it is under way, what other calls bring waits for it to end,
//! and is done together next, with one answer for all. Whoever is alone waits for nobody.

use std::sync::{Mutex, PoisonError};

use tokio::sync::oneshot::{self, error::TryRecvError};

/// What calls brought, and nobody has begun.
pub(crate) struct Gathered<T, R = ()> {
    waiting: Mutex<Vec<Waiting<T, R>>>,
    working: tokio::sync::Mutex<()>,
}

struct Waiting<T, R> {
    brought: T,
    /// Told the answer when it was done, and dropped when nobody knows.
    done: oneshot::Sender<R>,
}

impl<T, R> Default for Gathered<T, R> {
    fn default() -> Self {
        Self { waiting: Mutex::default(), working: tokio::sync::Mutex::default() }
    }
}

impl<T, R: Clone> Gathered<T, R> {
    /// Does what `brought` is for, with what other calls brought meanwhile. The work begins after this call. `None`: nobody knows
    /// whether it was done, because of another's, or because the call that did it was given up.
    ///
    /// # Errors
    /// Of the work, when it was alone.
    pub(crate) async fn with_others<E, F: Future<Output = Result<R, E>>>(
        &self,
        brought: T,
        work: impl FnOnce(Vec<T>) -> F,
    ) -> Result<Option<R>, E> {
        let mut told = self.add(brought);
        let _turn = self.working.lock().await;
        match told.try_recv() {
            Ok(answer) => return Ok(Some(answer)),
            Err(TryRecvError::Closed) => return Ok(None),
            // Still among those that wait.
            Err(TryRecvError::Empty) => {}
        }
        let (brought, tellers): (Vec<_>, Vec<_>) =
            self.take_all().into_iter().map(|one| (one.brought, one.done)).unzip();
        let is_alone = brought.len() == 1;
        match work(brought).await {
            Ok(answer) => {
                for teller in tellers {
                    let _who_was_given_up_hears_nothing = teller.send(answer.clone());
                }
                Ok(Some(answer))
            }
            Err(_) if !is_alone => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn add(&self, brought: T) -> oneshot::Receiver<R> {
        let (done, told) = oneshot::channel();
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).push(Waiting { brought, done });
        told
    }

    fn take_all(&self) -> Vec<Waiting<T, R>> {
        std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures::future::{join_all, poll_immediate};
    use tokio::sync::Notify;

    use super::*;

    /// Gives numbers to be worked on: the first by itself, held back until the others wait, which are then done together.
    async fn gathered(
        others: Result<&'static str, &'static str>,
    ) -> (Vec<Vec<u32>>, Vec<Result<Option<&'static str>, &'static str>>) {
        let gathered = Gathered::default();
        let done = Mutex::new(Vec::new());
        let go_on = Arc::new(Notify::new());
        let first = gathered.with_others(1, |numbers| {
            done.lock().unwrap().push(numbers);
            let go_on = Arc::clone(&go_on);
            async move {
                go_on.notified().await;
                Ok("first")
            }
        });
        let rest = (2..=4).map(|number| {
            gathered.with_others(number, |numbers| {
                done.lock().unwrap().push(numbers);
                async move { others }
            })
        });
        let (first, rest, ()) = tokio::join!(first, join_all(rest), async { go_on.notify_one() });
        (done.into_inner().unwrap(), [vec![first], rest].concat())
    }

    #[tokio::test]
    async fn what_comes_meanwhile_is_done_together() {
        let (done, answers) = gathered(Ok("together")).await;
        assert_eq!(done, [vec![1], vec![2, 3, 4]]);
        assert_eq!(answers, [Some("first"), Some("together"), Some("together"), Some("together")].map(Ok));
    }

    #[tokio::test]
    async fn what_fails_together_is_known_of_none() {
        let (_, answers) = gathered(Err("refused")).await;
        assert_eq!(answers, [Some("first"), None, None, None].map(Ok));
    }

    #[tokio::test]
    async fn whoever_is_alone_is_told_why_it_failed() {
        let alone = Gathered::<(), ()>::default().with_others((), |_| async { Err("refused") }).await;
        assert_eq!(alone, Err("refused"));
    }

    async fn is_pending<R>(call: &mut (impl Future<Output = R> + Unpin)) -> bool {
        poll_immediate(call).await.is_none()
    }

    #[tokio::test]
    async fn when_a_call_is_given_up_those_beside_it_do_not_know() {
        let gathered: Gathered<u32> = Gathered::default();
        let turn = gathered.working.lock().await;
        let mut given_up = Box::pin(gathered.with_others(1, |_| std::future::pending::<Result<(), ()>>()));
        let beside = gathered.with_others(2, |_| async { Ok::<(), ()>(()) });
        let mut beside = Box::pin(beside);
        assert!(is_pending(&mut given_up).await && is_pending(&mut beside).await);
        drop(turn);
        assert!(is_pending(&mut given_up).await);
        drop(given_up);
        assert_eq!(beside.await, Ok(None));
    }
}
