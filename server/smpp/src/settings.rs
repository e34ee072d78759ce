//! Settings of a connection.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// Where to bind, as whom, and how many submits may be unanswered.
#[derive(Clone)]
pub struct Settings {
    /// `host:port`.
    pub address: String,
    /// TLS from the first byte, or plain TCP.
    pub tls: Option<Tls>,
    /// At most 15 ASCII characters (SMPP 3.4, 5.2.1).
    pub system_id: String,
    /// At most 8 ASCII characters (SMPP 3.4, 5.2.2).
    pub password: String,
    /// At most 12 ASCII characters (SMPP 3.4, 5.2.3); mostly empty.
    pub system_type: String,
    /// One bind for both directions, or one for each.
    pub bind: BindMode,
    /// Submits that may wait for an answer; at least 1, 0 counts as 1.
    pub window: usize,
    /// Submits per second; 0 is no limit.
    pub rate: u32,
    /// How long things may take.
    pub timers: Timers,
}

impl fmt::Debug for Settings {
    /// Without the password: settings end up in logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("address", &self.address)
            .field("tls", &self.tls)
            .field("system_id", &self.system_id)
            .field("system_type", &self.system_type)
            .field("bind", &self.bind)
            .field("window", &self.window)
            .field("rate", &self.rate)
            .field("timers", &self.timers)
            .finish_non_exhaustive()
    }
}

/// How the carrier's certificate is checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tls {
    /// PEM file of the authorities to trust instead of the public ones. Read at each connect.
    pub ca_file: Option<PathBuf>,
    /// The name that the certificate must be for; the address's host as a rule.
    pub server_name: String,
}

/// How the two directions are bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BindMode {
    /// One socket for both.
    Transceiver,
    /// Two sockets; the connection counts as bound when both are.
    TransmitterAndReceiver,
}

/// How long things may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timers {
    /// Name look-up, TCP and TLS together.
    pub connect: Duration,
    /// Until the response to a bind or a submit, until any PDU after an enquire_link, and until the
    /// socket takes a byte of those that wait to be written.
    pub answer: Duration,
    /// Silence after which an enquire_link is sent.
    pub enquire_link: Duration,
    /// Upper bound of the first back-off, from which it doubles. No back-off is shorter than a
    /// quarter of this.
    pub backoff_min: Duration,
    /// Upper bound of every back-off.
    pub backoff_max: Duration,
    /// How long a close waits for answers.
    pub close: Duration,
}

impl Default for Timers {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            answer: Duration::from_secs(30),
            enquire_link: Duration::from_secs(30),
            backoff_min: Duration::from_millis(500),
            backoff_max: Duration::from_secs(30),
            close: Duration::from_secs(5),
        }
    }
}
