//! Passkeys, which an account may use in place of codes of its authenticator app.

/// The most passkeys of an account.
pub const PASSKEYS_MAX: usize = 5;
/// The most characters of a passkey's name.
pub const PASSKEY_NAME_CHARS_MAX: usize = 40;

/// The name of a passkey as it is stored, without space around it; `None` for a text that is empty
/// or too long, or has control characters.
pub fn passkey_name(text: &str) -> Option<&str> {
    let text = text.trim();
    let fits = (1..=PASSKEY_NAME_CHARS_MAX).contains(&text.chars().count());
    (fits && !text.chars().any(char::is_control)).then_some(text)
}
