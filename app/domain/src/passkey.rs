//! Passkeys. An account can use them instead of codes from its authenticator app.

/// The maximum number of passkeys per account.
pub const PASSKEYS_MAX: usize = 5;
/// The maximum number of characters in a passkey's name.
pub const PASSKEY_NAME_CHARS_MAX: usize = 40;

/// Returns the name of a passkey as it is stored, without white space around it. Returns `None` if
/// the text is empty or too long, or has control characters.
pub fn passkey_name(text: &str) -> Option<&str> {
    let text = text.trim();
    let fits = (1..=PASSKEY_NAME_CHARS_MAX).contains(&text.chars().count());
    (fits && !text.chars().any(char::is_control)).then_some(text)
}
