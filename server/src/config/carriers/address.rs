//! The address of a carrier.

use std::fmt;

/// A host and a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    text: String,
    host: String,
}

impl Address {
    /// Parses `host:port`. An IPv6 address must be in brackets.
    pub fn parse(text: &str) -> Option<Self> {
        let (host, port) = text.rsplit_once(':')?;
        let host = match host.strip_prefix('[') {
            Some(rest) => rest.strip_suffix(']').filter(|host| is_ipv6(host))?,
            None => Some(host).filter(|host| is_name(host))?,
        };
        port.parse::<u16>().ok().filter(|port| *port > 0)?;
        Some(Self { text: text.to_owned(), host: host.to_owned() })
    }

    /// Returns the host without brackets. The carrier's certificate must be for this name.
    pub fn host(&self) -> &str {
        &self.host
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn is_ipv6(host: &str) -> bool {
    host.parse::<std::net::Ipv6Addr>().is_ok()
}

fn is_name(host: &str) -> bool {
    let part = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_');
    !host.is_empty() && host.bytes().all(part)
}
