//! The filters of the reports, as they stand in the address.

use std::fmt::Write as _;

use leptos_router::location::Url;
use serde::{Deserialize, Serialize};

#[cfg(feature = "ssr")]
use {
    crate::problem::{Cause, Filter, Problem},
    domain::{MessageStatus, Number, Reference, Transid},
    service::MessageFilter,
};

/// Where the CSV of the filtered messages is.
pub const CSV_PATH: &str = "/reports/messages.csv";

/// What was typed into the filters; an empty one filters nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReportFilter {
    /// A reference.
    pub application: String,
    pub status: String,
    pub number: String,
    pub requestid: String,
    pub transid: String,
    pub cursor: String,
}

impl ReportFilter {
    /// Reads the filters through a function that gives a parameter's text.
    pub fn read(parameter: impl Fn(&str) -> Option<String>) -> Self {
        let text = |name| parameter(name).unwrap_or_default().trim().to_owned();
        Self {
            application: text("application"),
            status: text("status"),
            number: text("number"),
            requestid: text("requestid"),
            transid: text("transid"),
            cursor: text("cursor"),
        }
    }

    /// Whether nothing is filtered.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let Self {
            application,
            status,
            number,
            requestid,
            transid,
            cursor: _,
        } = self;
        [application, status, number, requestid, transid]
            .iter()
            .all(|text| text.is_empty())
    }

    /// An address with these filters and another cursor, or none.
    #[must_use]
    pub fn address(&self, path: &str, cursor: &str) -> String {
        let parameters = [
            ("application", self.application.as_str()),
            ("status", &self.status),
            ("number", &self.number),
            ("requestid", &self.requestid),
            ("transid", &self.transid),
            ("cursor", cursor),
        ];
        let mut address = path.to_owned();
        let mut separator = '?';
        for (name, text) in parameters {
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
    /// Names the first one that holds what it can't hold.
    #[cfg(feature = "ssr")]
    pub fn parse(&self, limit: i64) -> Result<(Option<Reference>, MessageFilter), Problem> {
        let Self {
            application,
            status,
            number,
            requestid,
            transid,
            cursor,
        } = self;
        let given = |text: &String| (!text.is_empty()).then(|| text.clone());
        let wrong = |filter| Problem::from(Cause::Filter(filter));
        let reference = given(application)
            .map(|text| Reference::parse(&text).map_err(|_| wrong(Filter::Application)))
            .transpose()?;
        let filter = MessageFilter {
            transid: given(transid)
                .map(|text| Transid::parse(&text).ok_or_else(|| wrong(Filter::Transid)))
                .transpose()?,
            requestid: given(requestid),
            number: given(number)
                .map(|text| Number::parse(&text).map_err(|_| wrong(Filter::Number)))
                .transpose()?
                .map(|number| number.digits().to_owned()),
            status: given(status)
                .map(|text| MessageStatus::parse(&text).ok_or_else(|| wrong(Filter::Status)))
                .transpose()?,
            cursor: given(cursor),
            limit,
            ..MessageFilter::default()
        };
        Ok((reference, filter))
    }
}
