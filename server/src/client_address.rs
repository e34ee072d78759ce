//! The client's address: that of the peer, or the one that a trusted proxy reports.

use std::net::IpAddr;

use axum::http::HeaderMap;

use domain::AddressRange;

/// The client's address. Every request has it as an extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientAddress(pub IpAddr);

impl ClientAddress {
    /// Reads `X-Forwarded-For` from the end. An address counts only if the one after it is that of
    /// a trusted proxy, so that clients can't choose their addresses.
    pub fn find(peer: IpAddr, headers: &HeaderMap, trusted: &[AddressRange]) -> Self {
        let mut address = peer.to_canonical();
        let stated = headers
            .get_all("x-forwarded-for")
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(','))
            .collect::<Vec<_>>();
        for text in stated.into_iter().rev() {
            if !trusted.iter().any(|network| network.contains(address)) {
                break;
            }
            let Ok(before) = text.trim().parse::<IpAddr>() else {
                break;
            };
            address = before.to_canonical();
        }
        Self(address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_trusted_proxies_are_believed() {
        let trusted: Vec<AddressRange> =
            vec!["127.0.0.0/8".parse().unwrap(), "10.0.0.0/8".parse().unwrap()];
        let cases = [
            ("203.0.113.5", "198.51.100.1", "203.0.113.5"),
            ("127.0.0.1", "198.51.100.1", "198.51.100.1"),
            ("127.0.0.1", "192.0.2.66, 198.51.100.1, 10.0.0.7", "198.51.100.1"),
            ("127.0.0.1", "nonsense", "127.0.0.1"),
            ("127.0.0.1", "", "127.0.0.1"),
        ];
        for (peer, stated, expected) in cases {
            let mut headers = HeaderMap::new();
            headers.insert("x-forwarded-for", stated.parse().unwrap());
            let found = ClientAddress::find(peer.parse().unwrap(), &headers, &trusted);
            assert_eq!(found.0.to_string(), expected, "{peer} {stated}");
        }
    }
}
