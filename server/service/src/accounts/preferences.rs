//! What the owner of an account chooses for it.

use domain::Theme;

use crate::Service;
use crate::error::Result;
use crate::store::accounts;

impl Service {
    /// Sets the colours in which an account sees the portal.
    ///
    /// # Errors
    /// `Failed` or `Uncertain` when the database can't be written.
    pub async fn set_theme(&self, account_id: i64, theme: Theme) -> Result<()> {
        self.in_transaction(move |tx, _| {
            Box::pin(async move { accounts::set_theme(tx, account_id, theme).await })
        })
        .await
    }
}
