//! What cookies are called.

/// What a cookie's name begins with under HTTPS: browsers then take it from this very host alone,
/// and only with the attribute Secure.
const HOST_PREFIX: &str = "__Host-";

/// Whether browsers reach the portal by HTTPS, here or at a proxy before it.
pub fn is_https(base_url: &str) -> bool {
    base_url.starts_with("https://")
}

/// A cookie's name, as it is under HTTPS or without it.
pub fn cookie_name(name: &str, is_https: bool) -> String {
    let prefix = if is_https { HOST_PREFIX } else { "" };
    format!("{prefix}{name}")
}
