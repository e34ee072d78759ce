//! Checks whether the connection to a database server is protected.

use std::net::IpAddr;

use sqlx::postgres::{PgConnectOptions, PgSslMode};

/// Returns the host of a database server on another machine, unless the connection verifies that
/// host. On an unverified connection, somebody could read or change the data in transit, or answer
/// in place of the server.
pub fn unprotected_host(url: &str) -> Option<String> {
    if !url.starts_with("postgres") {
        return None;
    }
    // An invalid URL is refused when the database is opened.
    let options: PgConnectOptions = url.parse().ok()?;
    // IPv6 addresses are in brackets.
    let host = options.get_host().trim_matches(['[', ']']);
    let is_loopback = match host.parse::<IpAddr>() {
        Ok(address) => address.to_canonical().is_loopback(),
        Err(_) => host == "localhost" || host.starts_with('/'),
    };
    let is_here = is_loopback || options.get_socket().is_some();
    let is_verified = matches!(options.get_ssl_mode(), PgSslMode::VerifyFull);
    (!is_here && !is_verified).then(|| host.to_owned())
}

#[cfg(test)]
mod tests {
    use super::unprotected_host;

    #[test]
    fn only_a_verified_connection_leaves_the_machine() {
        for url in [
            "sqlite:data/heliograph.db",
            "postgres://u:p@localhost/d",
            "postgres://u:p@127.0.0.1:5433/d",
            "postgres://u:p@[::1]/d",
            "postgres://u:p@ignored/d?host=/run/postgresql",
            "postgres://u:p@db.example/d?sslmode=verify-full",
            "postgresql://u:p@10.0.0.5/d?sslmode=verify-full&sslrootcert=ca.pem",
        ] {
            assert_eq!(unprotected_host(url), None, "{url}");
        }
        for (url, host) in [
            ("postgres://u:p@db.example/d", "db.example"),
            ("postgres://u:p@10.0.0.5/d?sslmode=require", "10.0.0.5"),
            ("postgres://u:p@10.0.0.5/d?sslmode=verify-ca", "10.0.0.5"),
            ("postgres://u:p@localhost/d?host=db.example", "db.example"),
            ("postgres://u:p@localhost/d?hostaddr=10.0.0.5", "10.0.0.5"),
        ] {
            assert_eq!(unprotected_host(url).as_deref(), Some(host), "{url}");
        }
    }
}
