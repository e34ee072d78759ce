//! Checks of codes. They are inputs of commit groups, so that many share a commit. The group locks
//! a verification before it decides, so that all processes together never accept more attempts than
//! allowed.

use std::collections::HashMap;

use domain::verify::{CheckAnswer, CheckFailure, SECRET_BYTES, TypedCode};
use domain::{EventStream, Timestamp, VerifyId};
use serde::{Deserialize, Serialize};

use super::code_of;
use crate::Messages;
use crate::admission::KeyAccess;
use crate::admission::idempotency::{Digest, IdempotencyKey, Once};
use store::Tx;
use store::error::{Error, Refusal, Result};
use store::verifications::{self, CheckedVerification};

/// The answer to an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checked {
    /// `None` if the code was right.
    pub failure: Option<CheckFailure>,
    pub tries_left: u32,
    /// `None` for an unknown verification.
    pub expires_at: Option<Timestamp>,
    /// Whether this is the answer to an earlier request with the same idempotency key.
    #[serde(skip)]
    pub replayed: bool,
}

/// An attempt, as a commit group gets it.
pub(crate) struct PreparedCheck {
    stream: EventStream,
    /// `None` if the text can't be an ID.
    id: Option<VerifyId>,
    typed: TypedCode,
    secret: [u8; SECRET_BYTES],
    once: Option<Once>,
}

impl Messages<'_> {
    /// Checks a code that was typed. `id` is the verification's, as the client wrote it.
    ///
    /// # Errors
    /// `IdempotencyMismatch`; `WrongCodeLength` if the verification's code has another number of
    /// digits, which costs no attempt.
    pub async fn check_code(
        &self,
        access: &KeyAccess,
        id: &str,
        typed: TypedCode,
        key: Option<&IdempotencyKey>,
    ) -> Result<Checked> {
        let shard = self.shard_of(access.reference).await?;
        let secret = self.accounts().code_secret().await?;
        let stream = access.stream();
        let once = key.map(|key| {
            let mut digest = Digest::new("verify/check");
            digest.text(id);
            digest.bytes(&typed.digest(&secret));
            Once::new(stream, key, digest)
        });
        let check = PreparedCheck { stream, id: VerifyId::parse(id), typed, secret, once };
        let clock_ms = self.code_clock_ms(shard, access).await?;
        let mut checked = self.inner.group_commit.inbox(shard).check(check).await?;
        checked.expires_at = checked.expires_at.map(|at| at.plus_ms(clock_ms));
        Ok(checked)
    }
}

/// Decides the attempts of a group in order, and stores them.
pub(crate) async fn check_all(
    tx: &mut Tx<'_>,
    checks: &[&PreparedCheck],
    now: Timestamp,
) -> Result<Vec<Result<Checked>>> {
    let mut ids: Vec<VerifyId> = checks.iter().filter_map(|check| check.id).collect();
    ids.sort_unstable();
    ids.dedup();
    let found = verifications::for_check(tx, &ids).await?;
    let before: HashMap<VerifyId, u32> =
        found.iter().map(|it| (it.id, it.state.attempts)).collect();
    let mut found: HashMap<VerifyId, CheckedVerification> =
        found.into_iter().map(|it| (it.id, it)).collect();
    let mut answers = Vec::with_capacity(checks.len());
    for check in checks {
        let earlier = match &check.once {
            Some(once) => once.answered::<Checked>(tx, now).await,
            None => Ok(None),
        };
        let answer = match earlier {
            Ok(Some(earlier)) => Ok(Checked { replayed: true, ..earlier }),
            Ok(None) => check.decide(&mut found, now),
            Err(error) => Err(error),
        };
        if let (Ok(answer), Some(once)) = (&answer, &check.once)
            && !answer.replayed
        {
            once.clone().keep(tx, answer, now).await?;
        }
        // A refusal concerns only this request. Any other error fails the group.
        answers.push(match answer {
            Err(error) if error.refusal().is_none() => return Err(error),
            answer => answer,
        });
    }
    let changed = found.values().filter(|it| before.get(&it.id) != Some(&it.state.attempts));
    let changed: Vec<&CheckedVerification> = changed.collect();
    verifications::set_checked(tx, &changed).await?;
    Ok(answers)
}

impl PreparedCheck {
    fn decide(
        &self,
        found: &mut HashMap<VerifyId, CheckedVerification>,
        now: Timestamp,
    ) -> Result<Checked> {
        let found = self.id.and_then(|id| found.get_mut(&id));
        let Some(found) = found.filter(|found| found.stream == self.stream) else {
            let failure = Some(CheckFailure::Unknown);
            return Ok(Checked { failure, tries_left: 0, expires_at: None, replayed: false });
        };
        if found.state.ended(now).is_none() && self.typed.digits().len() != found.digits {
            return Err(Error::from(Refusal::WrongCodeLength(found.digits)));
        }
        let code = code_of(&self.secret, found.stream.test, (found.id, found.nonce, found.digits));
        let (answer, state) = found.state.check(code.is(&self.typed), now);
        if state.is_verified && !found.state.is_verified {
            found.verified_at = Some(now);
        }
        found.state = state;
        Ok(Checked {
            failure: match answer {
                CheckAnswer::Verified => None,
                CheckAnswer::Wrong { .. } => Some(CheckFailure::WrongCode),
                CheckAnswer::Ended(ended) => Some(ended.into()),
            },
            tries_left: state.tries_left(),
            expires_at: Some(state.expires_at),
            replayed: false,
        })
    }
}
