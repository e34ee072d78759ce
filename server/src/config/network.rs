//! An address or a range of addresses.

use std::net::IpAddr;
use std::str::FromStr;

/// `10.0.0.0/8`, or one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    prefix_bits: u32,
}

/// The text is no network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidNetwork;

impl FromStr for Network {
    type Err = InvalidNetwork;

    fn from_str(text: &str) -> Result<Self, InvalidNetwork> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| InvalidNetwork)?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let prefix_bits = match bits {
            Some(bits) => bits.parse().map_err(|_| InvalidNetwork)?,
            None => most,
        };
        if prefix_bits > most {
            return Err(InvalidNetwork);
        }
        Ok(Self {
            address,
            prefix_bits,
        })
    }
}

impl Network {
    /// Whether the address lies in the range. An IPv4 address that came in over IPv6 counts as
    /// IPv4.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(net), IpAddr::V4(ip)) => {
                let shift = 32 - self.prefix_bits;
                u64::from(net.to_bits()) >> shift == u64::from(ip.to_bits()) >> shift
            }
            (IpAddr::V6(net), IpAddr::V6(ip)) => {
                let differing = net.to_bits() ^ ip.to_bits();
                // Shifting by all 128 bits would overflow.
                self.prefix_bits == 0 || differing >> (128 - self.prefix_bits) == 0
            }
            _ => false,
        }
    }
}
