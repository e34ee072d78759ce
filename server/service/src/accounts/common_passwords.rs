//! The passwords that are tried first: those of a public list, and what is made of them.

use domain::Password;
use domain::password::{InvalidPassword, parts_of};

use crate::Service;
use crate::error::{Refusal, Result};

/// A password that is among the first million guesses counts as common.
const GUESSES_MIN: u64 = 1_000_000;

impl Service {
    /// Refuses a new password that is common or made of the account's email.
    pub(crate) async fn refuse_guessable(&self, password: &Password, email: &str) -> Result<()> {
        password.must_differ_from(email).map_err(refused)?;
        let (password, email) = (password.clone(), email.to_lowercase());
        // It takes milliseconds, so that it waits in the queue of the hashes.
        let common = self.inner.hasher.blocking(move || {
            let guesses = zxcvbn::zxcvbn(password.expose(), &parts_of(&email)).guesses();
            Ok(guesses < GUESSES_MIN)
        });
        if common.await? {
            return Err(refused(InvalidPassword::Common));
        }
        Ok(())
    }
}

fn refused(invalid: InvalidPassword) -> crate::Error {
    Refusal::InvalidPassword(invalid).into()
}
