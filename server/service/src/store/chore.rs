//! Chores: work that several processes would only repeat.

use domain::BatchId;

/// A kind of work that one process at a time does.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Chore {
    Expire,
    ForgetSegments,
    ForgetAnswers,
    DropHistory,
    WatchNodes,
    MatchCrossed,
    FoldDays,
    MailNotices,
    /// The expansion of one batch.
    Expand(BatchId),
}

impl Chore {
    /// The number that the chore is locked under: a batch's id, which is positive, or a negative
    /// number.
    pub(crate) const fn number(self) -> i64 {
        match self {
            Self::Expire => -1,
            Self::ForgetSegments => -2,
            Self::ForgetAnswers => -3,
            Self::DropHistory => -4,
            Self::WatchNodes => -5,
            Self::MatchCrossed => -6,
            Self::FoldDays => -7,
            Self::MailNotices => -8,
            Self::Expand(id) => id.0,
        }
    }
}
