//! Events that go ahead of their jobs, gathered: while one send is under way, those of other calls wait for it to end, and
//! share the next one. Whoever is alone waits for nobody.

use std::sync::{Mutex, PoisonError};

use tidegate_domain::occurrence::Occurrence;
use tokio::sync::oneshot::{self, error::TryRecvError};

use super::Emission;
use crate::EngineError;

/// Events that wait for the next send.
#[derive(Default)]
pub(crate) struct Gathered {
    waiting: Mutex<Vec<Waiting>>,
    sending: tokio::sync::Mutex<()>,
}

struct Waiting {
    event: Occurrence,
    /// Told when it was sent, and dropped when nobody knows.
    sent: oneshot::Sender<()>,
}

impl Gathered {
    fn add(&self, event: Occurrence) -> oneshot::Receiver<()> {
        let (sent, told) = oneshot::channel();
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).push(Waiting { event, sent });
        told
    }

    fn take_all(&self) -> Vec<Waiting> {
        std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Emission {
    /// Sends a single event before its job is written, with those of other calls that came meanwhile. `false`: nobody knows
    /// whether it was sent, because of another's event, or because the call that sent it was given up.
    ///
    /// # Errors
    /// When it was alone, and the queue did not take it.
    pub(crate) async fn send_ahead_gathered(&self, event: Occurrence) -> Result<bool, EngineError> {
        let mut told = self.gathered.add(event);
        let _turn = self.gathered.sending.lock().await;
        match told.try_recv() {
            Ok(()) => return Ok(true),
            Err(TryRecvError::Closed) => return Ok(false),
            // Still among those that wait.
            Err(TryRecvError::Empty) => {}
        }
        let (events, tellers): (Vec<_>, Vec<_>) =
            self.gathered.take_all().into_iter().map(|one| (one.event, one.sent)).unzip();
        match self.send_ahead(&events).await {
            Ok(()) => {
                for teller in tellers {
                    let _who_was_given_up_hears_nothing = teller.send(());
                }
                Ok(true)
            }
            Err(_) if events.len() > 1 => Ok(false),
            Err(error) => Err(error),
        }
    }
}
