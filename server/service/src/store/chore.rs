//! Work that several processes would only do twice.

use domain::BatchId;

/// Work that one process at a time does.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Chore {
    Expire,
    ForgetSegments,
    ForgetAnswers,
    DropHistory,
    WatchNodes,
    MatchCrossed,
    FoldDays,
    /// Of one batch.
    Expand(BatchId),
}

impl Chore {
    /// A number of its own; batches' ids are positive.
    pub(crate) const fn number(self) -> i64 {
        match self {
            Self::Expire => -1,
            Self::ForgetSegments => -2,
            Self::ForgetAnswers => -3,
            Self::DropHistory => -4,
            Self::WatchNodes => -5,
            Self::MatchCrossed => -6,
            Self::FoldDays => -7,
            Self::Expand(id) => id.0,
        }
    }
}
