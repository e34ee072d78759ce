//! What is recorded about the security of accounts.

use serde::{Deserialize, Serialize};

use crate::words::words;

words! {
    /// What happened.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    pub enum SecurityEventKind {
        SignedIn = "sign_in",
        SignInFailed = "sign_in_failed",
        SignedOutOthers = "sign_out_others",
        PasswordWrong = "password_wrong",
        PasswordChanged = "password_changed",
        ResetAsked = "reset_asked",
        PasswordReset = "password_reset",
        EmailChanged = "email_changed",
        EmailChangeStopped = "email_change_stopped",
        AccountClosed = "account_closed",
        KeyReplaced = "key_replaced",
        AccessDenied = "access_denied",
        SecondFactorChanged = "second_factor_changed",
        CodeWrong = "code_wrong",
        RecoveryCodeUsed = "recovery_code_used",
        PasskeyAdded = "passkey_added",
        PasskeyRemoved = "passkey_removed",
        PasskeyUsed = "passkey_used",
        PasskeyRefused = "passkey_refused",
        /// The sum of a minute's attempts that were throttled; of no account.
        Throttled = "throttled",
    }
}

impl SecurityEventKind {
    /// What happened, as the account's owner reads it.
    pub const fn title(self) -> &'static str {
        match self {
            Self::SignedIn => "Signed in",
            Self::SignInFailed => "Sign-in failed: wrong password",
            Self::SignedOutOthers => "All other devices signed out",
            Self::PasswordWrong => "Wrong password where it was asked for again",
            Self::PasswordChanged => "Password changed",
            Self::ResetAsked => "Reset link asked for",
            Self::PasswordReset => "Password set by a reset link",
            Self::AccountClosed => "Account closed",
            Self::EmailChanged => "Email changed",
            Self::EmailChangeStopped => "Change of the email stopped by a link",
            Self::KeyReplaced => "Key replaced",
            Self::AccessDenied => "A page was refused",
            Self::SecondFactorChanged => "Second factor changed",
            Self::CodeWrong => "Wrong code of the second factor",
            Self::RecoveryCodeUsed => "Recovery code used",
            Self::PasskeyAdded => "Passkey added",
            Self::PasskeyRemoved => "Passkey removed",
            Self::PasskeyUsed => "Passkey used",
            Self::PasskeyRefused => "Passkey refused",
            Self::Throttled => "Attempts throttled",
        }
    }
}
