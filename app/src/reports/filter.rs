//! The filters of the reports, as they stand in the page's address.

use std::fmt::Write as _;

use leptos_router::location::Url;
use serde::{Deserialize, Serialize};

#[cfg(feature = "ssr")]
use {
    crate::problem::{Cause, Filter, Problem},
    domain::timestamp::DAY_MS,
    domain::{BatchId, MessageStatus, Number, Reference, Timestamp, Transid},
    service::MessageFilter,
};

/// The path of the CSV file of the filtered messages.
pub const CSV_PATH: &str = "/reports/messages.csv";

/// The filters as they were typed. An empty one filters nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReportFilter {
    /// A reference.
    pub application: String,
    pub status: String,
    pub number: String,
    pub requestid: String,
    pub transid: String,
    pub batchid: String,
    /// The first day, UTC.
    pub from: String,
    /// The last day, UTC.
    pub to: String,
    /// The cursor of the list of messages.
    pub cursor: String,
    /// The cursor of the list of batches.
    pub batches: String,
}

impl ReportFilter {
    /// Reads the filters. `parameter` gives the text of a parameter by its name.
    pub fn read(parameter: impl Fn(&str) -> Option<String>) -> Self {
        let text = |name| parameter(name).unwrap_or_default().trim().to_owned();
        Self {
            application: text("application"),
            status: text("status"),
            number: text("number"),
            requestid: text("requestid"),
            transid: text("transid"),
            batchid: text("batchid"),
            from: text("from"),
            to: text("to"),
            cursor: text("cursor"),
            batches: text("batches"),
        }
    }

    /// The filters with their names in the address, without the cursors.
    fn conditions(&self) -> [(&'static str, &str); 8] {
        [
            ("application", &self.application),
            ("status", &self.status),
            ("number", &self.number),
            ("requestid", &self.requestid),
            ("transid", &self.transid),
            ("batchid", &self.batchid),
            ("from", &self.from),
            ("to", &self.to),
        ]
    }

    /// Whether nothing is filtered.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.conditions().iter().all(|(_, text)| text.is_empty())
    }

    /// An address with these filters and the cursor of a list: its name, `cursor` or `batches`, and
    /// its value.
    #[must_use]
    pub fn address(&self, path: &str, on: (&str, &str)) -> String {
        let mut address = path.to_owned();
        let mut separator = '?';
        for (name, text) in self.conditions().into_iter().chain([on]) {
            if !text.is_empty() {
                // Writing to a String can't fail.
                let _ = write!(address, "{separator}{name}={}", Url::escape(text));
                separator = '&';
            }
        }
        address
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
            Number::parse(text).ok()
        })?;
        let filter = MessageFilter {
            transid: given(&self.transid, Filter::Transid, Transid::parse)?,
            requestid: Some(self.requestid.clone()).filter(|text| !text.is_empty()),
            batchid: given(&self.batchid, Filter::Batch, BatchId::parse)?,
            number: number.map(|number| number.digits().to_owned()),
            status: given(&self.status, Filter::Status, MessageStatus::parse)?,
            from: given(&self.from, Filter::From, midnight)?,
            to: given(&self.to, Filter::To, midnight)?.map(|day| day.plus_ms(DAY_MS)),
            cursor: Some(self.cursor.clone()).filter(|text| !text.is_empty()),
            limit,
        };
        Ok((reference, filter))
    }
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
