//! Clients: whatever was planned before the repair is looked up before it is delivered.

use super::RepairError;
use super::session::Session;

impl Session<'_> {
    /// Marks every client, beside those that have jobs, as if its jobs had changed now: messages and packs may be of jobs that
    /// are not there any more, or are there again.
    pub(super) async fn look_at_clients(&self) -> Result<(), RepairError> {
        let mut after = None;
        loop {
            let page = self.store.clients(after).await?;
            let (clients, next) = self.readable(page);
            let (store, now) = (self.store, self.now);
            self.write_all(clients.iter().map(|client| store.mark_dirty(&client.id, now))).await?;
            after = next;
            if after.is_none() {
                return Ok(());
            }
        }
    }
}
