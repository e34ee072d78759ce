//! Security events of accounts.

use serde::{Deserialize, Serialize};

use crate::words::words;

words! {
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
        /// A summary of the attempts throttled within a minute. It belongs to no account.
        Throttled = "throttled",
    }
}

impl SecurityEventKind {
    /// Returns the title that the account's owner reads.
    pub const fn title(self) -> &'static str {
        match self {
            Self::SignedIn => "Signed in",
            Self::SignInFailed => "Sign-in failed: wrong password",
            Self::SignedOutOthers => "All other devices signed out",
            Self::PasswordWrong => "Wrong password when confirming an action",
            Self::PasswordChanged => "Password changed",
            Self::ResetAsked => "Reset link requested",
            Self::PasswordReset => "Password set by a reset link",
            Self::AccountClosed => "Account closed",
            Self::EmailChanged => "Email changed",
            Self::EmailChangeStopped => "Email change stopped by a link",
            Self::KeyReplaced => "Key replaced",
            Self::AccessDenied => "Access to a page denied",
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
