//! The passwords that are tried first: those of a public list, and what is made of them.

use domain::Password;
use domain::password::{InvalidPassword, parts_of};
use tokio::sync::OnceCell;

use crate::Service;
use crate::error::{Refusal, Result};

/// A password that is among the first million guesses counts as common.
const GUESSES_MIN: u64 = 1_000_000;

/// Whether zxcvbn has read its lists.
static LISTS: OnceCell<()> = OnceCell::const_new();

impl Service {
    /// Refuses a new password that is common or made of the account's email.
    pub(crate) async fn refuse_guessable(&self, password: &Password, email: &str) -> Result<()> {
        password.must_differ_from(email).map_err(refused)?;
        LISTS.get_or_init(read_lists).await;
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

/// Has zxcvbn read its lists, which it does once, behind a lock. A thread of the lowest priority
/// would hold that lock for as long as every core is busy, and everybody else would wait for it.
async fn read_lists() {
    let every_kind = || zxcvbn::zxcvbn("correcthorse qwerty aaa 1990 2.2.1990", &[]);
    // Where it panicked, the next one would do so too, and say why.
    drop(tokio::task::spawn_blocking(every_kind).await);
}

fn refused(invalid: InvalidPassword) -> crate::Error {
    Refusal::InvalidPassword(invalid).into()
}
