//! Chores: work that several processes would only repeat.

use domain::BatchId;
use domain::ids::Shard;

/// More than there are kinds of chores that are locked under a negative number.
const KINDS: i64 = 64;

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
    CountMargins,
    CreditStatements,
    ForgetStatements,
    /// The expansion of one batch.
    Expand(BatchId),
}

impl Chore {
    /// The number that the chore is locked under in a shard: a batch's id, which is positive, or a
    /// negative number. Each shard has a lock of its own: where a shard can't be written, its lock
    /// is kept until the database has rolled its transaction back, and holds up no other shard.
    pub(crate) fn number(self, shard: Shard) -> i64 {
        let kind = match self {
            Self::Expire => 1,
            Self::ForgetSegments => 2,
            Self::ForgetAnswers => 3,
            Self::DropHistory => 4,
            Self::WatchNodes => 5,
            Self::MatchCrossed => 6,
            Self::FoldDays => 7,
            Self::MailNotices => 8,
            Self::CountMargins => 9,
            Self::CreditStatements => 10,
            Self::ForgetStatements => 11,
            Self::Expand(id) => return id.0,
        };
        -(shard.0 * KINDS + kind)
    }
}
