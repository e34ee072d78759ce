//! The faults of a connection. A table says for each kind what happened and what an operator can
//! do.

use std::fmt;
use std::io;

use tokio_rustls::rustls::{self, CertificateError};

use crate::command_status::describe;
use crate::encode::Role;
use crate::status_code;

/// A fault, with the details of its last occurrence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// What kind of fault it is.
    pub kind: FaultKind,
    /// The number and name of the peer's status, or the operating system's error. Can be empty.
    pub detail: String,
}

/// The words for a kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Words {
    /// A stable code.
    pub code: &'static str,
    /// How the fault shows itself: a `command_status`, or an error of the network.
    pub sign: &'static str,
    /// What happened.
    pub sentence: &'static str,
    /// What the operator can do.
    pub next_step: &'static str,
}

impl Words {
    /// Writes the sentence, the details and the next step.
    pub fn write(self, f: &mut fmt::Formatter<'_>, detail: &str) -> fmt::Result {
        f.write_str(self.sentence)?;
        if !detail.is_empty() {
            write!(f, " ({detail})")?;
        }
        write!(f, ". {}.", self.next_step)
    }
}

/// Declares the kinds of faults, each with its code, its sign, its sentence and its next step.
#[macro_export]
macro_rules! fault_kinds {
    (
        $(#[$about:meta])*
        pub enum $name:ident;
        $($kind:ident: $code:literal, $sign:literal, $sentence:literal, $next_step:literal;)+
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {
            $(#[doc = $sentence] $kind,)+
        }

        impl $name {
            /// The words for every kind, in order of declaration.
            pub const WORDS: &'static [$crate::Words] = &[$($crate::Words {
                code: $code,
                sign: $sign,
                sentence: $sentence,
                next_step: $next_step,
            },)+];

            /// Returns the words for this kind.
            pub const fn words(self) -> $crate::Words {
                Self::WORDS[self as usize]
            }
        }
    };
}

fault_kinds! {
    /// The kinds of faults, in the order of a connection's life.
    pub enum FaultKind;
    NameUnknown: "name_unknown", "DNS",
        "The carrier's name can't be resolved",
        "Check \"address\" in heliograph.toml and this machine's DNS: getent hosts NAME";
    NobodyListens: "nobody_listens", "connection refused",
        "Nobody listens at the carrier's address",
        "Check host and port of \"address\". Ask the carrier whether its SMSC is up";
    Unreachable: "unreachable", "no route to the host",
        "The carrier's address can't be reached",
        "Check this machine's network and its VPN to the carrier";
    ConnectTimeout: "connect_timeout", "no answer to the connect",
        "The carrier's address doesn't answer",
        "Check \"address\" and the firewalls. Ask the carrier whether it allows this machine's IP \
         address";
    TlsNotSpoken: "tls_not_spoken", "no TLS handshake",
        "The carrier doesn't speak TLS at this address",
        "Ask the carrier for its TLS port. If it has none, use a VPN and set tls = false";
    TlsExpected: "tls_expected", "a TLS record instead of a response",
        "The carrier expects TLS at this address",
        "Set tls = true, or ask the carrier for its port without TLS";
    TlsRefused: "tls_refused", "TLS alert",
        "The carrier ended the TLS handshake",
        "If the carrier wants a client certificate, set \"tls_cert\" and \"tls_key\". Otherwise \
         ask which TLS versions and certificates it accepts";
    CertificateUntrusted: "certificate_untrusted", "certificate",
        "The carrier's certificate isn't trusted",
        "If the carrier has its own authority or a self-signed certificate, set \"tls_ca\" to its \
         PEM file";
    CertificateName: "certificate_name", "certificate",
        "The carrier's certificate is for another name",
        "Use the name of the certificate in \"address\", or set \"tls_ca\" to the certificate \
         itself";
    CertificateExpired: "certificate_expired", "certificate",
        "The carrier's certificate has expired or isn't valid yet",
        "Check this machine's clock. Ask the carrier for a new certificate";
    TlsFile: "tls_file", "a PEM file",
        "A file of the TLS settings can't be used",
        "Check the file: it must be PEM, and the service must be able to read it";
    BindUnanswered: "bind_unanswered", "no answer to the bind",
        "The carrier doesn't answer the bind",
        "Check that \"address\" is an SMPP port. If the carrier expects TLS, set tls = true. Ask \
         the carrier whether its SMSC hangs";
    BindClosed: "bind_closed", "closed before the bind's answer",
        "The carrier closed the connection without answering the bind",
        "Ask the carrier whether it allows this machine's IP address and another bind. If it \
         expects TLS, set tls = true";
    BindPassword: "bind_password", "0x0E",
        "The carrier refused the bind: wrong password",
        "Check \"password\" in heliograph.toml. SMPP allows 8 characters. Some carriers check only \
         the first 8, others refuse a longer password";
    BindSystemId: "bind_system_id", "0x0F",
        "The carrier refused the bind: wrong system_id",
        "Check \"system_id\" in heliograph.toml. Ask the carrier whether the account is active";
    BindType: "bind_type", "0x03, 0x04",
        "The carrier refused the bind: this kind of bind isn't allowed",
        "Set \"bind\" to what the carrier allows: transceiver, transmitter+receiver, transmitter \
         or receiver";
    BindAlready: "bind_already", "0x05",
        "The carrier refused the bind: already bound",
        "Lower \"connections\", so that all nodes together have no more than the carrier allows. \
         After a lost connection, the carrier may keep the old bind for minutes";
    BindSystemError: "bind_system_error", "0x08",
        "The carrier refused the bind: system error",
        "Wait: the server binds again by itself. If it lasts, contact the carrier";
    BindThrottled: "bind_throttled", "0x58, 0x14",
        "The carrier refused the bind: too many requests",
        "Wait: the server binds again by itself, less and less often. Lower \"connections\" if it \
         lasts";
    BindNack: "bind_nack", "generic_nack",
        "The carrier answered the bind with a generic_nack",
        "Check that \"address\" is an SMPP 3.4 port. Set \"bind\" to a kind of bind that the \
         carrier knows";
    BindParameter: "bind_parameter", "0x53, 0x48, 0x49, 0xC0 to 0xC4",
        "The carrier refused a parameter of the bind",
        "Compare \"system_type\" and \"address_range\" with what the carrier gave you";
    BindRefused: "bind_refused", "0x0D and others",
        "The carrier refused the bind",
        "Check \"system_id\", \"password\" and \"system_type\". Ask the carrier why, with this \
         number and time";
    Setting: "setting", "a value that SMPP can't carry",
        "A setting doesn't fit into a bind",
        "Correct it in heliograph.toml";
    Unbound: "unbound", "unbind",
        "The carrier ended the session",
        "Wait: the server binds again. If it recurs, ask the carrier why";
    Closed: "closed", "end of the stream",
        "The carrier closed the connection",
        "Wait: the server binds again. If it recurs, ask the carrier why, and whether \
         \"enquire_link\" should be shorter";
    ConnectionLost: "connection_lost", "an error of the network",
        "The connection was lost",
        "Wait: the server binds again. If it recurs, check the network";
    Silent: "silent", "no answer to enquire_link",
        "The carrier fell silent",
        "Wait: the server binds again. If it recurs, check the network, and firewalls that drop \
         idle connections (shorten \"enquire_link\")";
    SubmitsUnanswered: "submits_unanswered", "no submit_sm_resp",
        "The carrier is bound, but doesn't answer submits",
        "Contact the carrier. Messages without an answer are unknown. One message at a time is \
         submitted until one is answered";
    NotReading: "not_reading", "the socket accepts no bytes",
        "The carrier doesn't read what we send",
        "Wait: the server binds again. If it recurs, contact the carrier";
    BadPdu: "bad_pdu", "an impossible length",
        "The carrier sent something that isn't SMPP",
        "Check that \"address\" is an SMPP port. If it worked before, contact the carrier";
    Panic: "panic", "a defect of Heliograph",
        "The session failed",
        "Report this with the log";
    SubmitThrottled: "submit_throttled", "action throttle",
        "The carrier asked us to slow down",
        "Set \"carrier_rate\", or \"rate\" for each connection, to what the carrier allows, or ask \
         it for more. No message is lost";
    SubmitTemporary: "submit_temporary", "action retry",
        "The carrier can't take messages now",
        "Wait: the messages are submitted again. If it lasts, contact the carrier with this number \
         and time";
    SubmitHeld: "submit_held", "action hold",
        "The carrier refuses submits of this account",
        "Ask the carrier whether the account is active, has credit and may submit. One message at \
         a time is tried until one is accepted";
    SubmitRefusedAll: "submit_refused_all",
        "10 submits in a row with the same error: 0x0A, or about a parameter",
        "The carrier refuses every message with the same error",
        "Ask the carrier which senders the account may use. Compare \"service_type\", \
         \"source_ton\", \"data_coding\", \"segmentation\" and \"tlvs\" with its manual. One \
         message at a time is tried until one is accepted";
    SubmitParameter: "submit_parameter",
        "0x06, 0x07, 0x15, 0x43, 0x48, 0x49, 0x50, 0x51, 0x61 to 0x63, 0xC0 to 0xC4",
        "The carrier refused a parameter of a message",
        "Compare \"service_type\", \"source_ton\", \"destination_ton\", \"data_coding\", \
         \"segmentation\", \"validity_period\" and \"tlvs\" with the carrier's manual";
    SubmitRefused: "submit_refused", "action next_route or reject",
        "The carrier refused a message",
        "If it refuses one message, check its number, sender and text. If it refuses all, contact \
         the carrier with this number and time";
    SubmitWithoutId: "submit_without_id", "an empty message_id",
        "The carrier accepts messages without a message ID",
        "Ask the carrier to return a message_id in submit_sm_resp. Until then, receipts match by \
         user_message_reference, or by number and submit date";
}

impl FaultKind {
    /// Returns the kind of a refused bind.
    fn of_bind(status: u32) -> Self {
        match status {
            status_code::INVALID_PASSWORD => Self::BindPassword,
            status_code::INVALID_SYSTEM_ID => Self::BindSystemId,
            status_code::INVALID_COMMAND_ID | status_code::INCORRECT_BIND_STATUS => Self::BindType,
            status_code::ALREADY_BOUND => Self::BindAlready,
            status_code::SYSTEM_ERROR => Self::BindSystemError,
            status_code::THROTTLED | status_code::QUEUE_FULL => Self::BindThrottled,
            status_code::INVALID_SYSTEM_TYPE | 0x48 | 0x49 | 0xC0..=0xC4 => Self::BindParameter,
            _ => Self::BindRefused,
        }
    }

    /// Returns true if a status complains about a parameter that settings determine, not the
    /// message.
    pub fn is_of_parameter(status: u32) -> bool {
        matches!(
            status,
            0x06 | 0x07 | 0x15 | 0x43 | 0x48 | 0x49 | 0x50 | 0x51 | 0x61..=0x63 | 0xC0..=0xC4
        )
    }
}

impl Fault {
    pub(crate) fn new(kind: FaultKind, detail: impl Into<String>) -> Self {
        Self { kind, detail: detail.into() }
    }

    /// A bind that the peer refused with its own response.
    pub(crate) fn bind_refused(role: Role, status: u32) -> Self {
        let detail = format!("{}: {}", role.command(), describe(status));
        Self::new(FaultKind::of_bind(status), detail)
    }

    /// A bind that the peer refused with a generic_nack. The nack's status may say why.
    pub(crate) fn bind_nack(role: Role, status: u32) -> Self {
        let kind = match FaultKind::of_bind(status) {
            FaultKind::BindRefused | FaultKind::BindType => FaultKind::BindNack,
            kind => kind,
        };
        Self::new(kind, format!("generic_nack to {}: {}", role.command(), describe(status)))
    }

    /// A submit that the peer refused. The caller decides the kind.
    pub fn submit(kind: FaultKind, status: u32) -> Self {
        Self::new(kind, describe(status))
    }

    /// A submit that the peer accepted without a message ID.
    pub fn of_answer_without_id() -> Self {
        Self::new(FaultKind::SubmitWithoutId, "")
    }

    /// An error of a socket that was connected.
    pub(crate) fn lost(error: &io::Error) -> Self {
        let kind = match tls_error(error) {
            Some(rustls::Error::AlertReceived(_)) => FaultKind::TlsRefused,
            _ => FaultKind::ConnectionLost,
        };
        Self::new(kind, error.to_string())
    }

    /// An error of a TCP connect.
    pub(crate) fn connect(error: &io::Error) -> Self {
        let kind = match error.kind() {
            io::ErrorKind::ConnectionRefused => FaultKind::NobodyListens,
            io::ErrorKind::TimedOut => FaultKind::ConnectTimeout,
            _ => FaultKind::Unreachable,
        };
        Self::new(kind, error.to_string())
    }

    pub fn handshake(error: &io::Error) -> Self {
        let kind = match tls_error(error) {
            Some(rustls::Error::InvalidCertificate(error)) => match error {
                CertificateError::NotValidForName
                | CertificateError::NotValidForNameContext { .. } => FaultKind::CertificateName,
                CertificateError::Expired
                | CertificateError::ExpiredContext { .. }
                | CertificateError::NotValidYet
                | CertificateError::NotValidYetContext { .. } => FaultKind::CertificateExpired,
                _ => FaultKind::CertificateUntrusted,
            },
            Some(rustls::Error::InvalidMessage(_)) | None => FaultKind::TlsNotSpoken,
            Some(_) => FaultKind::TlsRefused,
        };
        let detail = match tls_error(error) {
            Some(rustls::Error::InvalidCertificate(CertificateError::Other(other))) => {
                let is_authority = other.to_string().contains("CaUsedAsEndEntity");
                let of_authority = "it is self-signed, or it is the certificate of an authority";
                if is_authority { of_authority } else { "it is invalid" }.to_owned()
            }
            _ => error.to_string(),
        };
        Self::new(kind, detail)
    }
}

fn tls_error(error: &io::Error) -> Option<&rustls::Error> {
    error.get_ref()?.downcast_ref()
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind.words().write(f, &self.detail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_its_own_code() {
        let mut codes: Vec<_> = FaultKind::WORDS.iter().map(|words| words.code).collect();
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes.len(), FaultKind::WORDS.len());
    }

    #[test]
    fn a_fault_has_its_number_and_the_next_step() {
        let fault = Fault::bind_refused(Role::Transceiver, 0x0E);
        let said = fault.to_string();
        let number =
            "(bind_transceiver: wrong password, ESME_RINVPASWD 0x0000000e). Check \"password\"";
        assert!(said.contains(number), "{said}");
        let nack = Fault::bind_nack(Role::Transceiver, 0x05);
        assert_eq!(nack.kind, FaultKind::BindAlready);
        assert!(nack.to_string().contains("generic_nack to bind_transceiver"), "{nack}");
        let vendors = Fault::submit(FaultKind::SubmitHeld, 0x401).to_string();
        assert!(vendors.contains("the carrier's own error 0x00000401"), "{vendors}");
    }
}
