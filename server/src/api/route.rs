//! Which of the API's addresses a path is.

use std::borrow::Cow;

use axum::http::Method;

use super::form::decode;

/// An address of the API, with the key when the path has one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Route {
    Send(PathKey),
    Bulk(PathKey),
    Reports(PathKey),
    /// One message, by the text that should be its transid.
    Report(PathKey, String),
    Batches(PathKey),
    /// One upload, by the text that should be its batchid.
    Batch(PathKey, String),
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
/// How a batchid starts, in contrast to a key.
const BATCHID_PREFIX: &str = "b_";

/// Whether the API answers for this path. It does so too where a base address that ends with a
/// slash was put before it, to say that nothing is there.
pub fn is_in(path: &str) -> bool {
    let inside = path.trim_start_matches('/');
    inside.len() < path.len()
        && inside
            .strip_prefix("sms")
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

impl Route {
    /// How logs and metrics name the routes.
    pub const TEMPLATES: [&'static str; 7] = [
        "/sms/send/{key}",
        "/sms/bulk/{key}",
        "/sms/reports/{key}",
        "/sms/reports/{key}/{transid}",
        "/sms/batches/{key}",
        "/sms/batches/{key}/{batchid}",
        "/sms/balance/{key}",
    ];

    /// `None` when there is nothing at this path.
    pub fn find(path: &str) -> Option<Self> {
        let segments: Vec<&str> = path.strip_prefix("/sms/")?.split('/').collect();
        let (name, rest) = segments.split_first()?;
        match *name {
            "send" => alone(rest).map(Self::Send),
            "bulk" => alone(rest).map(Self::Bulk),
            "balance" => alone(rest).map(Self::Balance),
            "reports" => match with_id(rest, TRANSID_PREFIX)? {
                (key, None) => Some(Self::Reports(key)),
                (key, Some(transid)) => Some(Self::Report(key, transid)),
            },
            "batches" => match with_id(rest, BATCHID_PREFIX)? {
                (key, None) => Some(Self::Batches(key)),
                (key, Some(batchid)) => Some(Self::Batch(key, batchid)),
            },
            _ => None,
        }
    }

    /// How logs and metrics name it; one of [`Self::TEMPLATES`].
    pub const fn template(&self) -> &'static str {
        match self {
            Self::Send(_) => Self::TEMPLATES[0],
            Self::Bulk(_) => Self::TEMPLATES[1],
            Self::Reports(_) => Self::TEMPLATES[2],
            Self::Report(..) => Self::TEMPLATES[3],
            Self::Batches(_) => Self::TEMPLATES[4],
            Self::Batch(..) => Self::TEMPLATES[5],
            Self::Balance(_) => Self::TEMPLATES[6],
        }
    }

    /// The value of `Allow`.
    pub const fn allowed(&self) -> &'static str {
        match self {
            Self::Send(_) => "GET, POST",
            Self::Bulk(_) => "POST",
            Self::Reports(_)
            | Self::Report(..)
            | Self::Batches(_)
            | Self::Batch(..)
            | Self::Balance(_) => "GET",
        }
    }

    /// HEAD and OPTIONS are never allowed: they would have to do what GET does.
    pub fn allows(&self, method: &Method) -> bool {
        match *method {
            Method::GET => !matches!(self, Self::Bulk(_)),
            Method::POST => matches!(self, Self::Send(_) | Self::Bulk(_)),
            _ => false,
        }
    }

    pub const fn key(&self) -> &PathKey {
        match self {
            Self::Send(key)
            | Self::Bulk(key)
            | Self::Reports(key)
            | Self::Report(key, _)
            | Self::Batches(key)
            | Self::Batch(key, _)
            | Self::Balance(key) => key,
        }
    }
}

/// What follows an address that ends with its key.
fn alone(rest: &[&str]) -> Option<PathKey> {
    match rest {
        [] => Some(PathKey::Absent),
        [key] => Some(PathKey::read(key)),
        _ => None,
    }
}

/// What follows an address that may end with an id.
fn with_id(rest: &[&str], prefix: &str) -> Option<(PathKey, Option<String>)> {
    match rest {
        // A key starts with a digit, so that an id can't be one.
        [id] if id.starts_with(prefix) => Some((PathKey::Absent, Some((*id).to_owned()))),
        [key, id] if !key.is_empty() && !id.is_empty() => {
            let id = decode(id.as_bytes(), false).unwrap_or_default();
            Some((PathKey::read(key), Some(id)))
        }
        rest => alone(rest).map(|key| (key, None)),
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
            ("//sms/send/k", None),
            ("/sms", None),
            ("/sms/", None),
            ("/sms/sent/k", None),
            ("/sms/bulk", Some(Route::Bulk(PathKey::Absent))),
            ("/sms/bulk/k", Some(Route::Bulk(given("k")))),
            ("/sms/bulk/k/", None),
            ("/sms/reports", Some(Route::Reports(PathKey::Absent))),
            ("/sms/reports/", Some(Route::Reports(PathKey::Absent))),
            ("/sms/reports/k", Some(Route::Reports(given("k")))),
            (
                "/sms/reports/m_0",
                Some(Route::Report(PathKey::Absent, "m_0".into())),
            ),
            (
                "/sms/reports/k/m_0",
                Some(Route::Report(given("k"), "m_0".into())),
            ),
            ("/sms/reports/b_0", Some(Route::Reports(given("b_0")))),
            ("/sms/batches", Some(Route::Batches(PathKey::Absent))),
            ("/sms/batches/k", Some(Route::Batches(given("k")))),
            (
                "/sms/batches/b_0",
                Some(Route::Batch(PathKey::Absent, "b_0".into())),
            ),
            (
                "/sms/batches/k/b_0",
                Some(Route::Batch(given("k"), "b_0".into())),
            ),
            ("/sms/batches/k/", None),
            ("/sms/batches//b_0", None),
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
            ("//sms", true),
            ("//sms/send/k", true),
            ("/smsx", false),
            ("//smsx", false),
            ("sms/x", false),
            ("/", false),
            ("//", false),
            ("", false),
        ] {
            assert_eq!(is_in(path), inside, "{path}");
        }
    }
}
