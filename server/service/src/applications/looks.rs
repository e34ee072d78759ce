//! Staff who look at the same case see each other.

use domain::decision::{CaseKind, Look};

use crate::Service;
use crate::error::Result;
use crate::store::staff_looks;

/// How long a look counts.
const LOOK_MS: i64 = 2 * 60 * 1000;
/// A look is written again when it is this old.
const RENEWED_AFTER_MS: i64 = 60 * 1000;

impl Service {
    /// Notes that a member of staff looks at these cases, and returns the looks of others at them
    /// in the last 2 minutes. A look is written at most once a minute.
    ///
    /// # Errors
    /// `Failed` or `Uncertain` when the database can't be read or written.
    pub async fn look_at_cases(
        &self,
        account_id: i64,
        kind: CaseKind,
        cases: Vec<String>,
    ) -> Result<Vec<Look>> {
        let now = self.now();
        let found = {
            let mut conn = self.store().read().await?;
            staff_looks::since(&mut conn, kind, now.plus_ms(-LOOK_MS)).await?
        };
        let is_noted = |case: &String| {
            found.iter().any(|stored| {
                let is_own = stored.account_id == account_id && stored.look.case == *case;
                is_own && now.ms_since(stored.seen_at) < RENEWED_AFTER_MS
            })
        };
        let others = found
            .iter()
            .filter(|stored| stored.account_id != account_id && cases.contains(&stored.look.case));
        let others = others.map(|stored| stored.look.clone()).collect();
        let due: Vec<_> = cases
            .iter()
            .filter(|case| !is_noted(case))
            .cloned()
            .collect();
        if !due.is_empty() {
            self.in_transaction(move |tx, now| {
                Box::pin(async move {
                    staff_looks::sweep(tx, now.plus_ms(-LOOK_MS)).await?;
                    staff_looks::set(tx, kind, &due, account_id, now).await
                })
            })
            .await?;
        }
        Ok(others)
    }
}
