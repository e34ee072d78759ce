//! The filters of the reports, as they stand in the page's address.

use std::fmt::Write as _;

use leptos_router::location::Url;
use serde::{Deserialize, Serialize};

#[cfg(feature = "ssr")]
use {
    crate::problem::{Cause, Filter, Problem},
    domain::timestamp::DAY_MS,
    domain::{BatchId, KeyKind, MessageStatus, Number, Reference, Timestamp, Transid},
    service::MessageFilter,
};

/// The path of the reports page.
pub const REPORTS_PATH: &str = "/reports";
/// The path of the CSV file of the filtered messages.
pub const CSV_PATH: &str = "/reports/messages.csv";
/// How many pages a list remembers the way back from.
const PAGES_BACK: usize = 100;

/// The filters as they were typed. An empty one filters nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReportFilter {
    /// A reference.
    pub application: String,
    pub status: String,
    /// The kind of key: `live` or `test`.
    pub key: String,
    pub number: String,
    pub requestid: String,
    pub transid: String,
    pub batchid: String,
    /// The first day, UTC.
    pub from: String,
    /// The last day, UTC.
    pub to: String,
    /// How the chart divides its bars: `application`, or by status.
    pub by: String,
    /// The way to this page of the list of messages: the cursors of all pages from the second one
    /// to this one, with points between them.
    pub cursor: String,
    /// The way to this page of the list of batches.
    pub batches: String,
}

/// A filter that is in use.
pub struct Condition<'a> {
    /// Its name in the address.
    pub name: &'static str,
    /// Its name on the page.
    pub label: &'static str,
    pub text: &'a str,
}

impl ReportFilter {
    /// Reads the filters. `parameter` gives the text of a parameter by its name.
    pub fn read(parameter: impl Fn(&str) -> Option<String>) -> Self {
        let text = |name| parameter(name).unwrap_or_default().trim().to_owned();
        Self {
            application: text("application"),
            status: text("status"),
            key: text("key"),
            number: text("number"),
            requestid: text("requestid"),
            transid: text("transid"),
            batchid: text("batchid"),
            from: text("from"),
            to: text("to"),
            by: text("by"),
            cursor: text("cursor"),
            batches: text("batches"),
        }
    }

    /// The filters that are in use, in the order of the form.
    pub fn conditions(&self) -> impl Iterator<Item = Condition<'_>> {
        let all = [
            ("application", "Application", self.application.as_str()),
            ("status", "Status", &self.status),
            ("key", "Key", &self.key),
            ("number", "Number", &self.number),
            ("from", "From", &self.from),
            ("to", "To", &self.to),
            ("requestid", "Request id", &self.requestid),
            ("transid", "Transid", &self.transid),
            ("batchid", "Batchid", &self.batchid),
        ];
        all.into_iter()
            .filter(|(_, _, text)| !text.is_empty())
            .map(|(name, label, text)| Condition { name, label, text })
    }

    /// Whether nothing is filtered.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.conditions().next().is_none()
    }

    /// An address with these filters and further parameters, of which empty ones are left out.
    #[must_use]
    pub fn address(&self, path: &str, others: &[(&str, &str)]) -> String {
        let mut address = path.to_owned();
        let mut separator = '?';
        let conditions = self.conditions().map(|of| (of.name, of.text));
        for (name, text) in conditions.chain(others.iter().copied()) {
            if !text.is_empty() {
                // Writing to a String can't fail.
                let _ = write!(address, "{separator}{name}={}", Url::escape(text));
                separator = '&';
            }
        }
        address
    }

    /// The address of the page with these filters, at the beginning of its lists.
    #[must_use]
    pub fn page(&self) -> String {
        self.address(REPORTS_PATH, &[("by", &self.by)])
    }

    /// The address of the page with the filters that are left when some are changed.
    #[must_use]
    pub fn page_with(&self, change: impl FnOnce(&mut Self)) -> String {
        let mut changed = self.clone();
        change(&mut changed);
        changed.page()
    }

    /// The address of the page without one of the filters.
    #[must_use]
    pub fn page_without(&self, name: &str) -> String {
        let rest = Self::read(|other| {
            let mut conditions = self.conditions().filter(|of| of.name != name);
            let condition = conditions.find(|of| of.name == other);
            condition.map(|of| of.text.to_owned())
        });
        Self {
            by: self.by.clone(),
            ..rest
        }
        .page()
    }

    /// The filters as the service takes them.
    ///
    /// # Errors
    /// [`Cause::Filter`] with the first filter whose value is invalid.
    #[cfg(feature = "ssr")]
    pub fn parse(&self, limit: i64) -> Result<(Option<Reference>, MessageFilter), Problem> {
        let reference = given(&self.application, Filter::Application, |text| {
            Reference::parse(text).ok()
        })?;
        let number = given(&self.number, Filter::Number, |text| {
            Number::parse_typed(text).ok()
        })?;
        let filter = MessageFilter {
            transid: given(&self.transid, Filter::Transid, Transid::parse)?,
            requestid: Some(self.requestid.clone()).filter(|text| !text.is_empty()),
            batchid: given(&self.batchid, Filter::Batch, BatchId::parse)?,
            number: number.map(|number| number.digits().to_owned()),
            status: given(&self.status, Filter::Status, MessageStatus::parse)?,
            from: given(&self.from, Filter::From, midnight)?,
            to: given(&self.to, Filter::To, midnight)?.map(|day| day.plus_ms(DAY_MS)),
            key: given(&self.key, Filter::Key, KeyKind::parse)?,
            cursor: last(&self.cursor).map(str::to_owned),
            limit,
        };
        if filter.from.is_some() && filter.to.is_some() && filter.from >= filter.to {
            return Err(Cause::Filter(Filter::Order).into());
        }
        Ok((reference, filter))
    }
}

/// The cursor at the end of a way: that of the page itself; `None` on the first page.
#[cfg(feature = "ssr")]
#[must_use]
pub fn last(way: &str) -> Option<&str> {
    way.rsplit('.').next().filter(|cursor| !cursor.is_empty())
}

/// The way to the page after this one.
#[must_use]
pub fn older(way: &str, next: &str) -> String {
    if way.is_empty() {
        return next.to_owned();
    }
    let way = if way.split('.').count() >= PAGES_BACK {
        way.split_once('.').map_or("", |(_, rest)| rest)
    } else {
        way
    };
    format!("{way}.{next}")
}

/// The way to the page before this one; empty for the first page. `None` on the first page.
#[must_use]
pub fn newer(way: &str) -> Option<&str> {
    let before = way.rsplit_once('.').map_or("", |(before, _)| before);
    (!way.is_empty()).then_some(before)
}

/// Reads a filter that may be empty.
#[cfg(feature = "ssr")]
fn given<T>(
    text: &str,
    filter: Filter,
    read: impl Fn(&str) -> Option<T>,
) -> Result<Option<T>, Problem> {
    if text.is_empty() {
        return Ok(None);
    }
    match read(text) {
        Some(value) => Ok(Some(value)),
        None => Err(Cause::Filter(filter).into()),
    }
}

/// The moment at which a day begins.
#[cfg(feature = "ssr")]
fn midnight(day: &str) -> Option<Timestamp> {
    Timestamp::parse(&format!("{day}T00:00:00Z"))
}

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use domain::KeyKind;

    use super::{PAGES_BACK, ReportFilter, last, newer, older};
    use crate::problem::{Cause, Filter};

    fn filter(pairs: &[(&str, &str)]) -> ReportFilter {
        ReportFilter::read(|name| {
            let found = pairs.iter().find(|(key, _)| *key == name);
            found.map(|(_, text)| (*text).to_owned())
        })
    }

    #[test]
    fn a_filter_is_taken_out_of_the_address_and_the_others_stay() {
        let filter = filter(&[
            ("status", "failed"),
            ("number", "58 00"),
            ("by", "application"),
            ("cursor", "m_1"),
        ]);
        assert_eq!(
            filter.page(),
            "/reports?status=failed&number=58%2000&by=application"
        );
        assert_eq!(
            filter.page_without("number"),
            "/reports?status=failed&by=application"
        );
        assert_eq!(
            filter.page_with(|filter| filter.key = "test".to_owned()),
            "/reports?status=failed&key=test&number=58%2000&by=application"
        );
        assert!(self::filter(&[("cursor", "m_1")]).is_empty());
    }

    #[test]
    fn numbers_may_be_typed_with_spaces_and_days_have_an_order() {
        let (_, wanted) = filter(&[("number", "58 00-19 87"), ("key", "test")])
            .parse(1)
            .unwrap();
        assert_eq!(wanted.number.as_deref(), Some("58001987"));
        assert_eq!(wanted.key, Some(KeyKind::Test));
        let days = |from, to| filter(&[("from", from), ("to", to)]).parse(1);
        assert!(days("2026-11-21", "2026-11-21").is_ok());
        let refused = days("2026-11-22", "2026-11-21").unwrap_err();
        assert_eq!(refused.cause, Cause::Filter(Filter::Order));
        assert_eq!(refused.cause.field(), Some("to"));
    }

    #[test]
    fn the_way_to_a_page_leads_back() {
        let second = older("", "m_2");
        let third = older(&second, "m_3");
        assert_eq!((last(""), newer("")), (None, None));
        assert_eq!((last(&second), newer(&second)), (Some("m_2"), Some("")));
        assert_eq!((last(&third), newer(&third)), (Some("m_3"), Some("m_2")));
        let far = (0..1000).fold(String::new(), |way, page| older(&way, &format!("m_{page}")));
        assert_eq!(far.split('.').count(), PAGES_BACK);
        assert_eq!(last(&far), Some("m_999"));
    }
}
