//! The faults of an HTTP carrier. One table has the texts for each: what happened, and what an
//! operator should do.

use std::error::Error;
use std::fmt;
use std::io::{self, ErrorKind};

use ::smpp::{Fault, FaultKind, fault_kinds};
use tokio_rustls::rustls;

/// A fault, with the details of its last occurrence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpFault {
    pub kind: HttpFaultKind,
    /// The HTTP status, what the carrier said, or the system's error. Contains no secret, and can
    /// be empty.
    pub detail: String,
}

fault_kinds! {
    /// The kinds of faults, in the order of a request's life.
    pub enum HttpFaultKind;
    NameUnknown: "http_name_unknown", "DNS",
        "The carrier's name can't be resolved",
        "Check \"url\" in heliograph.toml and this machine's DNS: getent hosts NAME";
    NobodyListens: "http_nobody_listens", "connection refused",
        "Nobody listens at the carrier's address",
        "Check host and port of \"url\". Ask the carrier whether its API is up";
    Unreachable: "http_unreachable", "no connection",
        "No connection to the carrier",
        "Check \"url\", this machine's network and its VPN to the carrier";
    ConnectTimeout: "http_connect_timeout", "no answer to the connect",
        "The carrier's address doesn't answer",
        "Check \"url\" and the firewalls. Ask the carrier whether it allows this machine's IP \
         address";
    TlsNotSpoken: "http_tls_not_spoken", "no TLS handshake",
        "The carrier doesn't speak TLS at this address",
        "Check host and port of \"url\". Ask the carrier whether it allows this machine's IP \
         address, and for its address with https. If it has none, use a VPN and http, which \
         allow_cleartext must list";
    TlsRefused: "http_tls_refused", "TLS alert",
        "The carrier ended the TLS handshake",
        "Check the name in \"url\". If the carrier wants a client certificate, set \"tls_cert\" \
         and \"tls_key\". Otherwise ask which TLS versions it accepts";
    CertificateUntrusted: "http_certificate_untrusted", "certificate",
        "The carrier's certificate isn't trusted",
        "If the carrier has its own authority or a self-signed certificate, set \"tls_ca\" to its \
         PEM file";
    CertificateName: "http_certificate_name", "certificate",
        "The carrier's certificate is for another name",
        "Use the name of the certificate in \"url\", or set \"tls_ca\" to the certificate itself";
    CertificateExpired: "http_certificate_expired", "certificate",
        "The carrier's certificate has expired or isn't valid yet",
        "Check this machine's clock. Ask the carrier for a new certificate";
    NotSent: "http_not_sent", "no request",
        "The request wasn't sent",
        "Check \"url\" and \"headers\" in heliograph.toml. The message is submitted again";
    Unanswered: "http_unanswered", "no answer in time",
        "The carrier doesn't answer",
        "Contact the carrier. Messages without an answer are unknown. One message at a time is \
         submitted until one is answered";
    ConnectionLost: "http_connection_lost", "an error of the network",
        "The connection was lost before the answer",
        "If it recurs, check the network and contact the carrier. Messages without an answer are \
         unknown";
    AnswerCut: "http_answer_cut", "an incomplete body",
        "The connection was lost in the middle of the answer",
        "If it recurs, check the network and contact the carrier. Messages without a whole answer \
         are unknown";
    NotHttp: "http_not_http", "an answer that isn't HTTP",
        "The carrier's answer isn't HTTP, so messages are unknown",
        "Check host and port of \"url\"";
    Redirected: "http_redirected", "3xx without a rule",
        "The carrier's answer leads to another address, so messages are unknown",
        "Check \"url\" and \"password\" in heliograph.toml. Heliograph doesn't follow the answer";
    AccessRefused: "http_access_refused", "401, 403",
        "The carrier refuses the key or this machine's address",
        "Check \"password\", \"username\" and \"headers\" in heliograph.toml. Ask the carrier \
         whether the account is active and allows this machine's IP address";
    UrlRefused: "http_url_refused", "404, 405",
        "The carrier doesn't know the URL or the method",
        "Compare \"url\" and \"method\" in heliograph.toml with the carrier's manual";
    Throttled: "http_throttled", "429, outcome throttled",
        "The carrier asked us to slow down",
        "Set \"rate\" to what the carrier allows, or ask it for more. No message is lost";
    RequestRefused: "http_request_refused", "other 4xx without a rule",
        "The carrier refuses the request",
        "Compare \"headers\" and \"json\" or \"form\" in heliograph.toml with the carrier's \
         manual, or add an answer rule for this status";
    ServerError: "http_server_error", "5xx",
        "The carrier's API has an error, so messages are unknown",
        "If it lasts, contact the carrier with this status and time. If the carrier surely didn't \
         accept the message, add an answer rule with the outcome retry";
    NoRule: "http_no_rule", "another status or body without a rule",
        "No answer rule fits the carrier's answer, so messages are unknown",
        "Add an answer rule for it in heliograph.toml. If the answer is a web page, check \"url\"";
    MessageRefused: "http_message_refused", "outcome refused",
        "The carrier refused a message",
        "If it refuses one message, check its number, sender and text. If it refuses all, contact \
         the carrier with this status and time";
    MessageDeferred: "http_message_deferred", "outcome retry",
        "The carrier can't take messages now",
        "Wait: the messages are submitted again. If it lasts, contact the carrier with this status \
         and time";
    MessagesHeld: "http_messages_held", "outcome hold",
        "The carrier refuses submits of this account",
        "Ask the carrier whether the account is active, has credit and may submit. One message at \
         a time is tried until one is accepted";
    AcceptedWithoutId: "http_without_id", "an accepted message without an ID",
        "The carrier accepts messages without a message ID, so receipts match none",
        "Compare the answer (heliograph carrier receipts NAME --json) with \"message_id\" of the \
         answer rule in heliograph.toml. If it has no ID, ask the carrier for one";
}

impl HttpFaultKind {
    /// Returns the kind of an answer that no rule matches.
    pub const fn of_status(status: u16) -> Self {
        match status {
            300..=399 => Self::Redirected,
            401 | 403 => Self::AccessRefused,
            404 | 405 => Self::UrlRefused,
            429 => Self::Throttled,
            400..=499 => Self::RequestRefused,
            500..=599 => Self::ServerError,
            _ => Self::NoRule,
        }
    }
}

impl HttpFault {
    pub fn new(kind: HttpFaultKind, detail: impl Into<String>) -> Self {
        Self { kind, detail: detail.into() }
    }

    /// Returns the text about an unknown outcome for customers, in the message's timeline. Of the
    /// carrier's answer, it contains only the HTTP status, with which such a detail begins.
    pub fn for_customers(&self) -> String {
        match self.kind {
            HttpFaultKind::Unanswered => "no answer in time".to_owned(),
            HttpFaultKind::AnswerCut => "the answer was cut off".to_owned(),
            HttpFaultKind::NotHttp => "the answer isn't HTTP".to_owned(),
            _ if self.detail.starts_with("HTTP status ") => {
                self.detail.split([',', ';', ':']).next().unwrap_or_default().to_owned()
            }
            _ => "the connection was lost".to_owned(),
        }
    }

    pub fn connect(error: &(dyn Error + 'static), detail: String) -> Self {
        let mut source = Some(error);
        while let Some(inner) = source {
            if inner.to_string().starts_with("dns error") {
                return Self::new(HttpFaultKind::NameUnknown, detail);
            }
            source = inner.source();
            let Some(io) = inner.downcast_ref::<io::Error>() else {
                continue;
            };
            // `source` skips the error inside of an `io::Error`.
            let inside = io.get_ref();
            let is_of_tls = matches!(inside, Some(inside) if inside.is::<rustls::Error>());
            // Only a peer that accepted the connection can end it, so the handshake failed.
            let is_ended =
                matches!(io.kind(), ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset);
            if is_of_tls || is_ended {
                return Self::handshake(io);
            }
            match io.kind() {
                ErrorKind::ConnectionRefused => {
                    return Self::new(HttpFaultKind::NobodyListens, detail);
                }
                ErrorKind::TimedOut => return Self::new(HttpFaultKind::ConnectTimeout, detail),
                _ => {}
            }
            if let Some(inside) = inside {
                source = Some(inside);
            }
        }
        Self::new(HttpFaultKind::Unreachable, detail)
    }

    /// Converts an error of a TLS handshake from the faults of SMPP connections.
    fn handshake(error: &io::Error) -> Self {
        let Fault { kind, detail } = Fault::handshake(error);
        let kind = match kind {
            FaultKind::CertificateUntrusted => HttpFaultKind::CertificateUntrusted,
            FaultKind::CertificateName => HttpFaultKind::CertificateName,
            FaultKind::CertificateExpired => HttpFaultKind::CertificateExpired,
            FaultKind::TlsRefused => HttpFaultKind::TlsRefused,
            _ => HttpFaultKind::TlsNotSpoken,
        };
        Self::new(kind, detail)
    }
}

impl fmt::Display for HttpFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind.words().write(f, &self.detail)
    }
}

#[cfg(test)]
mod tests {
    use ::smpp::Words;

    use super::*;

    const GUIDE: &str = include_str!("../../../../docs/OPERATIONS.md");

    #[test]
    fn the_guide_has_every_fault_of_http_carriers_and_its_next_step() {
        let head = "| fault | sign | what it says | next step |\n|---|---|---|---|\n";
        let rows = HttpFaultKind::WORDS.iter().map(|words| {
            let Words { code, sign, sentence, next_step } = words;
            format!("| `{code}` | {sign} | {sentence}. | {next_step}. |\n")
        });
        let table: String = std::iter::once(head.to_owned()).chain(rows).collect();
        assert!(GUIDE.contains(&format!("{table}\n")), "docs/OPERATIONS.md needs:\n{table}");
    }
}
