//! Common passwords, which attackers try first: those on public lists, and variations of them.

use domain::Password;
use domain::password::{InvalidPassword, parts_of};
use tokio::sync::OnceCell;

use crate::Accounts;
use store::error::{Refusal, Result};

/// A password that can be guessed in fewer attempts than this counts as common.
const GUESSES_MIN: u64 = 1_000_000;

/// Set once zxcvbn has loaded its word lists.
static LISTS: OnceCell<()> = OnceCell::const_new();

impl Accounts<'_> {
    /// Refuses a new password that is common or derived from the account's email.
    pub(crate) async fn refuse_guessable(&self, password: &Password, email: &str) -> Result<()> {
        password.must_differ_from(email).map_err(refused)?;
        LISTS.get_or_init(read_lists).await;
        let (password, email) = (password.clone(), email.to_lowercase());
        // The estimate takes milliseconds, so it waits in the same queue as the hashes.
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

/// Makes zxcvbn load its word lists. It loads them once, behind a lock. A thread of the lowest
/// priority would hold that lock for as long as every core is busy, and block all other threads
/// that need the lists.
async fn read_lists() {
    let every_kind = || zxcvbn::zxcvbn("correcthorse qwerty aaa 1990 2.2.1990", &[]);
    // A panic is ignored here. The caller's own call of zxcvbn then panics too and reports why.
    drop(tokio::task::spawn_blocking(every_kind).await);
}

fn refused(invalid: InvalidPassword) -> crate::Error {
    Refusal::InvalidPassword(invalid).into()
}
