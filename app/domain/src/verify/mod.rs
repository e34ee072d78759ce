//! One-time codes. The service sends a code to a number, and the owner of the phone types it.

mod code;
mod rules;
mod text;

pub(crate) use code::mac;
pub use code::{CODE_DIGITS, Code, DEFAULT_DIGITS, SECRET_BYTES, TypedCode};
pub use rules::{
    ATTEMPTS_MAX, COOL_DOWN_MS, CheckAnswer, CheckFailure, DEFAULT_TTL_S, Ended, KEPT_DAYS,
    RESENDS_AFTER_MS, ResendRefusal, TTL_S, Verification,
};
pub use text::{CodeText, InvalidWebOtpDomain, Locale, MASK, WebOtpDomain, longest_text, unmasked};
