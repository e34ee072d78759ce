//! Shows staff who else views the same case.

use domain::decision::{CaseKind, Viewer};

use crate::Applications;
use crate::transactions::work;
use store::case_viewers;
use store::error::Result;

/// How long somebody is shown as a viewer, in milliseconds.
const VIEWER_MS: i64 = 2 * 60 * 1000;
/// The age at which a stored view is renewed, in milliseconds.
const RENEWED_AFTER_MS: i64 = 60 * 1000;

impl Applications<'_> {
    /// Records that a member of staff views these cases. Returns the others who viewed them in the
    /// last two minutes. Stores a view at most once a minute.
    pub async fn view_cases(
        &self,
        account_id: i64,
        kind: CaseKind,
        cases: Vec<String>,
    ) -> Result<Vec<Viewer>> {
        let now = self.now();
        let found =
            case_viewers::since(&mut self.store().read().await?, kind, now.plus_ms(-VIEWER_MS))
                .await?;
        let is_recorded = |case: &String| {
            found.iter().any(|stored| {
                let is_own = stored.account_id == account_id && stored.viewer.case == *case;
                is_own && now.ms_since(stored.seen_at) < RENEWED_AFTER_MS
            })
        };
        let others = found.iter().filter(|stored| {
            stored.account_id != account_id && cases.contains(&stored.viewer.case)
        });
        let others = others.map(|stored| stored.viewer.clone()).collect();
        let due: Vec<_> = cases.iter().filter(|case| !is_recorded(case)).cloned().collect();
        if !due.is_empty() {
            self.in_transaction(work!(|tx, now| {
                case_viewers::sweep(tx, now.plus_ms(-VIEWER_MS)).await?;
                case_viewers::set(tx, kind, &due, account_id, now).await
            }))
            .await?;
        }
        Ok(others)
    }
}
