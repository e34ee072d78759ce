//! Which of the API's addresses a path is.

use std::borrow::Cow;

use axum::http::Method;

use super::form::decode;

/// An address of the API, with the key when the path has one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Route {
    Send(PathKey),
    Reports(PathKey),
    /// One message, by the text that should be its transid.
    Report(PathKey, String),
    Balance(PathKey),
}

/// The path's segment for the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathKey {
    /// None, or an empty one: the key may stand in a header.
    Absent,
    /// Decoded; `None` when its bytes are no UTF-8, which no key is.
    Given(Option<String>),
}

/// How a transid starts, in contrast to a key.
const TRANSID_PREFIX: &str = "m_";

/// Whether the API answers for this path.
pub fn is_in(path: &str) -> bool {
    path.strip_prefix("/sms")
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

impl Route {
    /// How logs and metrics name the routes.
    pub const TEMPLATES: [&'static str; 4] = [
        "/sms/send/{key}",
        "/sms/reports/{key}",
        "/sms/reports/{key}/{transid}",
        "/sms/balance/{key}",
    ];

    /// `None` when there is nothing at this path.
    pub fn find(path: &str) -> Option<Self> {
        let segments: Vec<&str> = path.strip_prefix("/sms/")?.split('/').collect();
        let (name, rest) = segments.split_first()?;
        match (*name, rest) {
            ("send", []) => Some(Self::Send(PathKey::Absent)),
            ("send", [key]) => Some(Self::Send(PathKey::read(key))),
            ("balance", []) => Some(Self::Balance(PathKey::Absent)),
            ("balance", [key]) => Some(Self::Balance(PathKey::read(key))),
            ("reports", []) => Some(Self::Reports(PathKey::Absent)),
            // A key starts with a digit, so that a transid can't be one.
            ("reports", [transid]) if transid.starts_with(TRANSID_PREFIX) => {
                Some(Self::Report(PathKey::Absent, (*transid).to_owned()))
            }
            ("reports", [key]) => Some(Self::Reports(PathKey::read(key))),
            ("reports", [key, transid]) if !key.is_empty() && !transid.is_empty() => {
                let transid = decode(transid.as_bytes(), false).unwrap_or_default();
                Some(Self::Report(PathKey::read(key), transid))
            }
            _ => None,
        }
    }

    /// How logs and metrics name it; one of [`Self::TEMPLATES`].
    pub const fn template(&self) -> &'static str {
        match self {
            Self::Send(_) => Self::TEMPLATES[0],
            Self::Reports(_) => Self::TEMPLATES[1],
            Self::Report(..) => Self::TEMPLATES[2],
            Self::Balance(_) => Self::TEMPLATES[3],
        }
    }

    /// The value of `Allow`.
    pub const fn allowed(&self) -> &'static str {
        match self {
            Self::Send(_) => "GET, POST",
            Self::Reports(_) | Self::Report(..) | Self::Balance(_) => "GET",
        }
    }

    /// HEAD and OPTIONS are never allowed: they would have to do what GET does.
    pub fn allows(&self, method: &Method) -> bool {
        *method == Method::GET || (*method == Method::POST && matches!(self, Self::Send(_)))
    }

    pub const fn key(&self) -> &PathKey {
        match self {
            Self::Send(key) | Self::Reports(key) | Self::Report(key, _) | Self::Balance(key) => key,
        }
    }
}

impl PathKey {
    fn read(segment: &str) -> Self {
        if segment.is_empty() {
            return Self::Absent;
        }
        // Keys need no escapes, so that most are taken as they are.
        let decoded = if segment.contains('%') {
            decode(segment.as_bytes(), false).map(Cow::Owned)
        } else {
            Some(Cow::Borrowed(segment))
        };
        Self::Given(decoded.map(Cow::into_owned))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(text: &str) -> PathKey {
        PathKey::Given(Some(text.to_owned()))
    }

    #[test]
    fn paths_lead_where_they_should() {
        for (path, route) in [
            ("/sms/send", Some(Route::Send(PathKey::Absent))),
            ("/sms/send/", Some(Route::Send(PathKey::Absent))),
            ("/sms/send/k", Some(Route::Send(given("k")))),
            ("/sms/send/%6B", Some(Route::Send(given("k")))),
            ("/sms/send/%FF", Some(Route::Send(PathKey::Given(None)))),
            ("/sms/send/a%2Fb", Some(Route::Send(given("a/b")))),
            ("/sms/send/k/", None),
            ("/sms/send//k", None),
            ("/sms//send/k", None),
            ("/sms", None),
            ("/sms/", None),
            ("/sms/sent/k", None),
            ("/sms/bulk/k", None),
            ("/sms/reports/k", Some(Route::Reports(given("k")))),
            (
                "/sms/reports/m_0",
                Some(Route::Report(PathKey::Absent, "m_0".into())),
            ),
            (
                "/sms/reports/k/m_0",
                Some(Route::Report(given("k"), "m_0".into())),
            ),
            ("/sms/reports/k/", None),
            ("/sms/reports/k/m_0/", None),
            ("/sms/balance/k", Some(Route::Balance(given("k")))),
        ] {
            assert_eq!(Route::find(path), route, "{path}");
        }
    }

    #[test]
    fn the_api_owns_its_prefix_and_no_more() {
        for (path, inside) in [
            ("/sms", true),
            ("/sms/", true),
            ("/sms/x", true),
            ("/smsx", false),
            ("/", false),
        ] {
            assert_eq!(is_in(path), inside, "{path}");
        }
    }
}
