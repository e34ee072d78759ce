//! The settings of a connection.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::{Reaction, SharedPace};

/// Where to bind, as whom, and how many submits may be unanswered.
#[derive(Clone)]
pub struct Settings {
    /// `host:port`.
    pub address: String,
    /// A second address. Each attempt to bind tries it if the bind at `address` fails.
    pub backup: Option<Backup>,
    /// TLS from the first byte, or plain TCP if `None`.
    pub tls: Option<Tls>,
    /// At most 15 ASCII characters (SMPP 3.4, 5.2.1).
    pub system_id: String,
    /// SMPP allows 8 ASCII characters (SMPP 3.4, 5.2.2). A longer one is sent whole.
    pub password: String,
    /// At most 12 ASCII characters (SMPP 3.4, 5.2.3). Usually empty.
    pub system_type: String,
    /// At most 40 ASCII characters (SMPP 3.4, 5.2.7). Usually empty.
    pub address_range: String,
    /// One bind for both directions, or one for each.
    pub bind: BindMode,
    /// The maximum number of unanswered submits. 0 counts as 1.
    pub window: usize,
    /// The maximum number of submits per second; 0 means no limit.
    pub rate: u32,
    /// A limit that this connection shares with others.
    pub shared_pace: Option<Arc<SharedPace>>,
    /// How to react to the status of a refused submit.
    pub reaction: Arc<dyn Fn(u32) -> Reaction + Send + Sync>,
    /// Time limits.
    pub timers: Timers,
}

impl fmt::Debug for Settings {
    /// Omits the password, because settings end up in logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("address", &self.address)
            .field("backup", &self.backup)
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

/// A second address of the peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backup {
    /// `host:port`.
    pub address: String,
    /// The name that its certificate must be for.
    pub server_name: String,
}

/// How the peer's certificate is verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tls {
    /// A PEM file with the certificates to trust instead of the public authorities: authorities, or
    /// the peer's own certificate. Read at each connect.
    pub ca_file: Option<PathBuf>,
    /// The name that the certificate must be for. Usually the host of the address.
    pub server_name: String,
    /// The certificate that we present, if the peer asks for one.
    pub client: Option<ClientCertificate>,
}

/// Our certificate and its key, in PEM files that are read at each connect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientCertificate {
    /// The certificate, followed by its intermediates.
    pub cert_file: PathBuf,
    /// The private key.
    pub key_file: PathBuf,
}

/// Which directions are bound, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BindMode {
    /// One socket for both directions.
    Transceiver,
    /// One socket that only submits.
    Transmitter,
    /// One socket that only receives. The caller must not submit on it.
    Receiver,
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
    /// If the peer answers no submit for this long while some are unanswered, it gets no more
    /// submits until it answers one. If `None`, only an `answer` timeout has this effect.
    pub silent: Option<Duration>,
    /// The link sends an enquire_link after this much silence.
    pub enquire_link: Duration,
    /// The upper bound of the first backoff, which doubles from there. No backoff is shorter than a
    /// quarter of this.
    pub backoff_min: Duration,
    /// The upper bound of every backoff.
    pub backoff_max: Duration,
    /// The first pause after a refusal that holds all submits. It doubles with each such refusal.
    pub hold_min: Duration,
    /// The longest of these pauses.
    pub hold_max: Duration,
    /// How long a close waits for answers.
    pub close: Duration,
}

/// The times for a client that sets none. Heliograph sets its own `answer`.
impl Default for Timers {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            answer: Duration::from_secs(30),
            silent: None,
            enquire_link: Duration::from_secs(30),
            backoff_min: Duration::from_millis(500),
            backoff_max: Duration::from_secs(30),
            hold_min: Duration::from_secs(5),
            hold_max: Duration::from_mins(1),
            close: Duration::from_secs(5),
        }
    }
}
