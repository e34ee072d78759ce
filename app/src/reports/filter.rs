//! The filters of the reports page, as its address holds them.

use domain::MessageStatus;

use crate::ui::{address, query};
#[cfg(feature = "ssr")]
use {
    crate::problem::{Cause, Filter, Problem},
    crate::ui::last,
    domain::{BatchId, KeyKind, Number, Reference, Timestamp, Transid, Zone},
    service::MessageFilter,
};

/// The path of the reports page.
pub const REPORTS_PATH: &str = "/reports";
/// The path of the CSV file with the filtered messages.
pub const CSV_PATH: &str = "/reports/messages.csv";

query! {
    /// The filters as the user typed them. An empty one filters nothing.
    pub struct ReportFilter {
        /// The reference of an application.
        pub application,
        pub status,
        /// The kind of key: `live` or `test`.
        pub key,
        pub number,
        pub requestid,
        pub transid,
        pub batchid,
        /// The first day, in the page's time zone.
        pub from,
        /// The last day, in the page's time zone.
        pub to,
        /// The hour of the day, 0 to 23. Applies only if a single day is selected.
        pub hour,
        /// The kind of chart: `application`, `cost` or `delivery`. Any other value means messages by
        /// status.
        pub by,
        /// The columns of the list of messages, separated by dots. Empty for the default columns.
        pub columns,
        /// The way to this page of the list of messages: the cursors of all pages from the second to
        /// this one, separated by dots.
        pub cursor,
        /// The way to this page of the list of batches.
        pub batches,
    }
}

/// A filter that is in use.
pub struct Condition<'a> {
    /// The name in the address.
    pub name: &'static str,
    /// The name on the page.
    pub label: &'static str,
    pub text: &'a str,
}

impl ReportFilter {
    /// Returns the hour. Returns an empty text unless a single day is selected.
    pub fn hour(&self) -> &str {
        let is_of_one_day = !self.from.is_empty() && ["", &*self.from].contains(&&*self.to);
        if is_of_one_day { &self.hour } else { "" }
    }

    /// Returns the filters in use, in the order of the form.
    pub fn conditions(&self) -> impl Iterator<Item = Condition<'_>> {
        let all = [
            ("application", "Application", self.application.as_str()),
            ("status", "Status", &self.status),
            ("key", "Key", &self.key),
            ("number", "Number", &self.number),
            ("from", "From", &self.from),
            ("to", "To", &self.to),
            ("hour", "Hour", self.hour()),
            ("requestid", "Request ID", &self.requestid),
            ("transid", "Transaction ID", &self.transid),
            ("batchid", "Batch ID", &self.batchid),
        ];
        all.into_iter()
            .filter(|(_, _, text)| !text.is_empty())
            .map(|(name, label, text)| Condition { name, label, text })
    }

    /// Whether no filter is in use.
    pub fn is_empty(&self) -> bool {
        self.conditions().next().is_none()
    }

    /// Whether the application is the only filter in use.
    pub fn has_application_alone(&self) -> bool {
        let mut names = self.conditions().map(|of| of.name);
        names.next() == Some("application") && names.next().is_none()
    }

    /// Whether messages are listed in the order in which they are due: those that are scheduled, of
    /// all applications or of one.
    pub fn is_by_due_time(&self) -> bool {
        let mut names = self.conditions().map(|of| of.name);
        self.status == MessageStatus::Scheduled.as_str()
            && names.all(|name| ["application", "status", "key"].contains(&name))
    }

    /// Returns an address with these filters and other parameters. Empty parameters are left out.
    pub fn address(&self, path: &str, others: &[(&str, &str)]) -> String {
        let conditions = self.conditions().map(|of| (of.name, of.text));
        address(path, conditions.chain(others.iter().copied()))
    }

    /// Returns the address of the page with these filters. Its lists show their first pages.
    pub fn page(&self) -> String {
        self.page_at("", "")
    }

    /// Returns the address of the page with these filters. One list shows the page at the end of
    /// `way`, and the other list shows its first page.
    pub fn page_at(&self, list: &'static str, way: &str) -> String {
        let others = [("by", &*self.by), ("columns", &self.columns), (list, way)];
        self.address(REPORTS_PATH, &others)
    }

    /// Returns the address of the page after a change to the filters.
    pub fn page_with(&self, change: impl FnOnce(&mut Self)) -> String {
        let mut changed = self.clone();
        change(&mut changed);
        changed.page()
    }

    /// Returns the address of the page without one of the filters.
    pub fn page_without(&self, name: &str) -> String {
        let rest = Self::read(|other| {
            let mut conditions = self.conditions().filter(|of| of.name != name);
            let condition = conditions.find(|of| of.name == other);
            condition.map(|of| of.text.to_owned())
        });
        Self { by: self.by.clone(), columns: self.columns.clone(), ..rest }.page()
    }

    /// Converts the filters to those of the service. Days are in the time zone `zone`.
    ///
    /// # Errors
    /// [`Cause::Filter`] with the first filter whose value is invalid.
    #[cfg(feature = "ssr")]
    pub fn parse(
        &self,
        limit: i64,
        zone: &Zone,
    ) -> Result<(Option<Reference>, MessageFilter), Problem> {
        let reference =
            given(&self.application, Filter::Application, |text| Reference::parse(text).ok())?;
        let number = given(&self.number, Filter::Number, |text| Number::parse_typed(text).ok())?;
        let from = given(&self.from, Filter::From, day)?;
        let to = given(&self.to, Filter::To, day)?;
        let hour = given(self.hour(), Filter::Hour, hour)?;
        let (from, to) = match from.zip(hour) {
            None => {
                (from.map(|day| zone.start_of_day(day)), to.map(|day| zone.start_of_day(day + 1)))
            }
            Some((day, hour)) => {
                let (begin, end) = zone.hour(day, hour);
                (Some(begin), Some(end))
            }
        };
        let filter = MessageFilter {
            transid: given(&self.transid, Filter::Transid, Transid::parse)?,
            requestid: Some(self.requestid.clone()).filter(|text| !text.is_empty()),
            batchid: given(&self.batchid, Filter::Batch, BatchId::parse)?,
            number,
            status: given(&self.status, Filter::Status, MessageStatus::parse)?,
            from,
            to,
            key: given(&self.key, Filter::Key, KeyKind::parse)?,
            cursor: last(&self.cursor).map(str::to_owned),
            limit,
        };
        // If the clocks skip the hour, the range is empty. That isn't an error.
        let is_empty = filter.from.zip(filter.to).is_some_and(|(from, to)| from >= to);
        if is_empty && hour.is_none() {
            return Err(Cause::Filter(Filter::Order).into());
        }
        Ok((reference, filter))
    }
}

/// Reads a filter. Returns `None` if it is empty.
#[cfg(feature = "ssr")]
pub fn given<T>(
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

/// Reads an hour of the day.
#[cfg(feature = "ssr")]
fn hour(text: &str) -> Option<i64> {
    text.parse().ok().filter(|hour| (0..24).contains(hour))
}

/// Reads a date. Returns its day, counted since 1970-01-01.
#[cfg(feature = "ssr")]
fn day(text: &str) -> Option<i64> {
    let midnight = Timestamp::parse(&format!("{text}T00:00:00Z"))?;
    Some(midnight.day())
}

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use domain::{KeyKind, Number, Zone};

    use super::ReportFilter;
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
            ("columns", "time.sender"),
            ("cursor", "m_1"),
        ]);
        assert_eq!(
            filter.page(),
            "/reports?status=failed&number=58%2000&by=application&columns=time.sender"
        );
        assert_eq!(
            filter.page_without("number"),
            "/reports?status=failed&by=application&columns=time.sender"
        );
        assert_eq!(
            filter.page_with(|filter| filter.key = "test".to_owned()),
            "/reports?status=failed&key=test&number=58%2000&by=application&columns=time.sender"
        );
        assert_eq!(filter.page_at("cursor", "m_2"), format!("{}&cursor=m_2", filter.page()));
        assert!(self::filter(&[("cursor", "m_1")]).is_empty());
    }

    #[test]
    fn numbers_may_be_typed_with_spaces_and_days_have_an_order() {
        let (_, wanted) = filter(&[("number", "58 00-19 87"), ("key", "test")])
            .parse(1, &Zone::default())
            .unwrap();
        assert_eq!(wanted.number.as_ref().map(Number::digits), Some("58001987"));
        assert_eq!(wanted.key, Some(KeyKind::Test));
        let (_, wanted) =
            filter(&[("from", "2026-11-21"), ("hour", "7")]).parse(1, &Zone::default()).unwrap();
        let hour = wanted.from.zip(wanted.to);
        let hour = hour.map(|(from, to)| (from.to_string(), to.to_string()));
        let expected = ["2026-11-21T07:00:00.000Z", "2026-11-21T08:00:00.000Z"];
        assert_eq!(hour.map(<[String; 2]>::from), Some(expected.map(String::from)));
        let hour_alone = filter(&[("hour", "7")]);
        assert!(hour_alone.is_empty());
        let (_, wanted) = hour_alone.parse(1, &Zone::default()).unwrap();
        assert_eq!((wanted.from, wanted.to), (None, None));
        let of_two_days = [("from", "2026-11-21"), ("to", "2026-11-22"), ("hour", "7")];
        assert_eq!(filter(&of_two_days).hour(), "");
        assert!(
            filter(&[("from", "2026-11-21"), ("hour", "24")]).parse(1, &Zone::default()).is_err()
        );
        let days = |from, to| filter(&[("from", from), ("to", to)]).parse(1, &Zone::default());
        assert!(days("2026-11-21", "2026-11-21").is_ok());
        let refused = days("2026-11-22", "2026-11-21").unwrap_err();
        assert_eq!(refused.cause, Cause::Filter(Filter::Order));
        assert_eq!(refused.cause.field(), Some("to"));
    }
}
