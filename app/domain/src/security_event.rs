//! Security events of accounts.

use serde::{Deserialize, Serialize};

use crate::words::words;

words! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    pub enum SecurityEventKind [
        /// The title that the account's owner reads.
        pub title: &'static str,
    ] {
        SignedIn = "sign_in", "Signed in";
        SignInFailed = "sign_in_failed", "Sign-in failed: wrong password";
        SignedOutOthers = "sign_out_others", "All other devices signed out";
        PasswordWrong = "password_wrong", "Wrong password when confirming an action";
        PasswordChanged = "password_changed", "Password changed";
        ResetAsked = "reset_asked", "Reset link requested";
        PasswordReset = "password_reset", "Password set by a reset link";
        EmailChanged = "email_changed", "Email changed";
        EmailChangeStopped = "email_change_stopped", "Email change stopped by a link";
        AccountClosed = "account_closed", "Account closed";
        KeyReplaced = "key_replaced", "Key replaced";
        AccessDenied = "access_denied", "Access to a page denied";
        SecondFactorChanged = "second_factor_changed", "Second factor changed";
        CodeWrong = "code_wrong", "Wrong code of the second factor";
        RecoveryCodeUsed = "recovery_code_used", "Recovery code used";
        PasskeyAdded = "passkey_added", "Passkey added";
        PasskeyRemoved = "passkey_removed", "Passkey removed";
        PasskeyUsed = "passkey_used", "Passkey used";
        PasskeyRefused = "passkey_refused", "Passkey refused";
        /// A summary of the attempts throttled within a minute. It belongs to no account.
        Throttled = "throttled", "Attempts throttled";
    }
}
