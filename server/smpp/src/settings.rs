//! The settings of a connection.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// Where to bind, as whom, and how many submits may be unanswered.
#[derive(Clone)]
pub struct Settings {
    /// `host:port`.
    pub address: String,
    /// TLS from the first byte, or plain TCP if `None`.
    pub tls: Option<Tls>,
    /// At most 15 ASCII characters (SMPP 3.4, 5.2.1).
    pub system_id: String,
    /// At most 8 ASCII characters (SMPP 3.4, 5.2.2).
    pub password: String,
    /// At most 12 ASCII characters (SMPP 3.4, 5.2.3). Usually empty.
    pub system_type: String,
    /// One bind for both directions, or one for each.
    pub bind: BindMode,
    /// The maximum number of unanswered submits. 0 counts as 1.
    pub window: usize,
    /// The maximum number of submits per second; 0 means no limit.
    pub rate: u32,
    /// Time limits.
    pub timers: Timers,
}

impl fmt::Debug for Settings {
    /// Omits the password, because settings end up in logs.
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

/// How the peer's certificate is verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tls {
    /// A PEM file with the authorities to trust instead of the public ones. Read at each connect.
    pub ca_file: Option<PathBuf>,
    /// The name that the certificate must be for. Usually the host of the address.
    pub server_name: String,
}

/// How the two directions are bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BindMode {
    /// One socket for both directions.
    Transceiver,
    /// Two sockets. The connection counts as bound when both are.
    TransmitterAndReceiver,
}

/// Time limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timers {
    /// For the DNS lookup, TCP and TLS together.
    pub connect: Duration,
    /// For the response to a bind or a submit, for any PDU after an enquire_link, and for the
    /// socket to accept the next pending byte.
    pub answer: Duration,
    /// The link sends an enquire_link after this much silence.
    pub enquire_link: Duration,
    /// The upper bound of the first backoff, which doubles from there. No backoff is shorter than a
    /// quarter of this.
    pub backoff_min: Duration,
    /// The upper bound of every backoff.
    pub backoff_max: Duration,
    /// How long a close waits for answers.
    pub close: Duration,
}

/// Times for a client that sets none. Heliograph sets its own `answer`.
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
