//! An address or a range of addresses.

use std::net::IpAddr;
use std::str::FromStr;

use ipnet::{AddrParseError, IpNet};

/// `10.0.0.0/8`, or one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network(IpNet);

impl FromStr for Network {
    type Err = AddrParseError;

    fn from_str(text: &str) -> Result<Self, AddrParseError> {
        match text.parse::<IpAddr>() {
            Ok(address) => Ok(Self(address.into())),
            Err(_) => text.parse().map(Self),
        }
    }
}

impl Network {
    /// Returns whether the address is in the range. An IPv4 address that came in over IPv6 counts
    /// as IPv4.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.0.contains(&address.to_canonical())
    }
}
