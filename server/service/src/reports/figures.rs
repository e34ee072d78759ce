//! Figures of an account's messages by hour or by day, in any time zone.

use std::collections::BTreeMap;

use domain::quarter::{Figures, QuarterRange};
use domain::{KeyKind, Reference};

use super::tests;
use crate::Service;
use crate::applications::chosen;
use crate::error::Result;
use crate::store::quarters;

/// An application's figures by period, which is counted since 1970-01-01 in the range's zone.
/// Periods without messages are left out.
pub type FiguresByPeriod = BTreeMap<i64, Figures>;

impl Service {
    /// Figures of the messages that were accepted within some ranges, of one of an account's
    /// applications or of each of them, sent with one kind of key or with both.
    ///
    /// # Errors
    /// `NoSuchApplication`.
    pub async fn account_figures(
        &self,
        account_id: i64,
        reference: Option<Reference>,
        key: Option<KeyKind>,
        ranges: &[QuarterRange],
    ) -> Result<Vec<(Reference, FiguresByPeriod)>> {
        let home = self.home_of_account(account_id).await?;
        let mut conn = self.store().read_at(home).await?;
        let mut figures = Vec::new();
        for owned in chosen(&mut conn, account_id, reference).await? {
            let mut periods = BTreeMap::new();
            for test in tests(key) {
                for range in ranges {
                    let whose = (owned.id, test);
                    quarters::add_periods(&mut conn, whose, *range, &mut periods).await?;
                }
            }
            figures.push((owned.reference, periods));
        }
        Ok(figures)
    }
}
