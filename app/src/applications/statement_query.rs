//! The part of a statement that a page shows, as parameters in the page's address.

use domain::ledger::TransferKind;
use serde::{Deserialize, Serialize};

use crate::ui::address;
#[cfg(feature = "ssr")]
use {
    crate::problem::{Cause, Filter, Problem},
    crate::ui::last,
    domain::timestamp::DAY_MS,
    domain::{Month, Timestamp},
    service::StatementFilter,
};

/// The parameters of a statement's address, unparsed. Without parameters, the page shows the
/// current month by day.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StatementQuery {
    /// The month shown by day, like `2026-10`.
    pub month: String,
    /// The kind of transfers listed, or `all`.
    pub kind: String,
    /// The list's first day, UTC.
    pub from: String,
    /// The list's last day, UTC.
    pub to: String,
    /// The way to this page of the list (see `ui::pager`).
    pub cursor: String,
}

impl StatementQuery {
    /// Reads the query from a function that returns each parameter.
    pub fn read(get: impl Fn(&str) -> Option<String>) -> Self {
        let text = |name| get(name).unwrap_or_default();
        Self {
            month: text("month"),
            kind: text("kind"),
            from: text("from"),
            to: text("to"),
            cursor: text("cursor"),
        }
    }

    /// Creates a query that lists the transfers of a kind, or all transfers.
    pub fn list(kind: Option<TransferKind>) -> Self {
        Self { kind: kind.map_or("all", TransferKind::as_str).to_owned(), ..Self::default() }
    }

    /// Creates a query that lists all transfers from one day to another.
    pub fn days(first: String, last: String) -> Self {
        Self { from: first, to: last, ..Self::list(None) }
    }

    /// Whether the page lists transfers, rather than days.
    pub const fn is_list(&self) -> bool {
        !(self.kind.is_empty() && self.from.is_empty() && self.to.is_empty())
    }

    pub fn address(&self, page: &str) -> String {
        address(
            page,
            [
                ("month", self.month.as_str()),
                ("kind", &self.kind),
                ("from", &self.from),
                ("to", &self.to),
                ("cursor", &self.cursor),
            ],
        )
    }

    /// Returns the kind of transfers listed, or `None` for all. An unknown kind counts as all.
    pub fn kind(&self) -> Option<TransferKind> {
        TransferKind::parse(&self.kind)
    }

    /// Returns the month shown. Defaults to the current month.
    ///
    /// # Errors
    /// [`Cause::NotFound`] if the text isn't a month.
    #[cfg(feature = "ssr")]
    pub fn month(&self, now: Timestamp) -> Result<Month, Problem> {
        if self.month.is_empty() {
            return Ok(Month::of(now));
        }
        Ok(Month::parse(&self.month).ok_or(Cause::NotFound)?)
    }

    /// Returns the filter for the transfers to list, `limit` at a time. If the query shows a month,
    /// these are the month's transfers.
    ///
    /// # Errors
    /// [`Cause::Filter`] if a day is invalid or the last day is before the first.
    /// [`Cause::NotFound`] if the text isn't a month.
    #[cfg(feature = "ssr")]
    pub fn filter(&self, limit: i64) -> Result<StatementFilter<'_>, Problem> {
        let day = |text: &str, filter| match text {
            "" => Ok(None),
            text => {
                let day = Timestamp::parse(&format!("{text}T00:00:00Z"));
                day.map(Some).ok_or_else(|| Problem::from(Cause::Filter(filter)))
            }
        };
        let month = Month::parse(&self.month).filter(|_| !self.is_list());
        if let Some(month) = month {
            return Ok(StatementFilter {
                from: Some(month.start()),
                to: Some(month.next().start()),
                limit,
                ..StatementFilter::default()
            });
        }
        if !self.is_list() && !self.month.is_empty() {
            return Err(Cause::NotFound.into());
        }
        let filter = StatementFilter {
            kind: self.kind(),
            from: day(&self.from, Filter::From)?,
            to: day(&self.to, Filter::To)?.map(|day| day.plus_ms(DAY_MS)),
            cursor: last(&self.cursor),
            limit,
        };
        if filter.from.is_some() && filter.to.is_some() && filter.from >= filter.to {
            return Err(Cause::Filter(Filter::Order).into());
        }
        Ok(filter)
    }
}

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use domain::ledger::TransferKind;

    use super::StatementQuery;
    use crate::problem::{Cause, Filter};

    #[test]
    fn an_address_is_read_as_it_was_written() {
        let query = StatementQuery {
            cursor: "12.7".to_owned(),
            ..StatementQuery::days("2026-10-01".to_owned(), "2026-10-31".to_owned())
        };
        let address = query.address("/s");
        assert_eq!(address, "/s?kind=all&from=2026-10-01&to=2026-10-31&cursor=12.7");
        let deposits = StatementQuery::list(Some(TransferKind::Deposit));
        assert_eq!(deposits.address("/s"), "/s?kind=deposit");
        assert_eq!(StatementQuery::default().address("/s"), "/s");
        assert!(query.is_list() && deposits.is_list());
        assert!(!StatementQuery::default().is_list());
    }

    #[test]
    fn days_that_are_none_and_days_in_the_wrong_order_are_named() {
        for (from, to, cause) in [
            ("yesterday", "", Filter::From),
            ("", "2026-02-30", Filter::To),
            ("2026-10-02", "2026-10-01", Filter::Order),
        ] {
            let query = StatementQuery::days(from.to_owned(), to.to_owned());
            let refused = query.filter(1).unwrap_err();
            assert_eq!(refused.cause, Cause::Filter(cause), "{from} {to}");
        }
        let query = StatementQuery::days("2026-10-01".to_owned(), "2026-10-01".to_owned());
        let filter = query.filter(1).unwrap();
        let month = StatementQuery { month: "2026-02".to_owned(), ..StatementQuery::default() };
        let february = month.filter(1).unwrap();
        let length_of_february = february.to.unwrap().ms_since(february.from.unwrap());
        assert_eq!(length_of_february, 28 * domain::timestamp::DAY_MS);
        let length = filter.to.unwrap().ms_since(filter.from.unwrap());
        assert_eq!(length, domain::timestamp::DAY_MS);
    }
}
