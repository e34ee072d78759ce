//! Ranges of IP addresses.

use core::net::{AddrParseError as InvalidAddress, IpAddr};
use std::fmt;
use std::str::FromStr;

use ipnet::{AddrParseError, IpNet};

use crate::words::serde_as_text;

/// A range of IP addresses: a network like `192.0.2.0/24`, or a single address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressRange(IpNet);

impl FromStr for AddressRange {
    type Err = AddrParseError;

    fn from_str(text: &str) -> Result<Self, AddrParseError> {
        let address: Result<IpAddr, InvalidAddress> = text.parse();
        match address {
            Ok(address) => Ok(Self(address.into())),
            Err(_) => text.parse().map(Self),
        }
    }
}

impl AddressRange {
    /// Returns whether the address is in the range. An IPv4 address that came in over IPv6 counts
    /// as IPv4.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.0.contains(&address.to_canonical())
    }
}

/// A single address is written without its length.
impl fmt::Display for AddressRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.prefix_len() == self.0.max_prefix_len() {
            return self.0.addr().fmt(f);
        }
        self.0.fmt(f)
    }
}

serde_as_text!(AddressRange, Self::from_str);
