//! Chores: background work that one process at a time does for all processes.

use domain::BatchId;
use domain::ids::Shard;

/// Greater than the number of any kind of chore, so that the locks of two shards never have the
/// same number.
const KINDS: i64 = 64;

/// A kind of background work that one process at a time does.
#[derive(Clone, Copy, Debug)]
pub enum Chore {
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
    ForgetEvents,
    JoinInbound,
    ForgetInbound,
    ForgetAlarms,
    /// The expansion of one batch.
    Expand(BatchId),
}

impl Chore {
    /// Returns the number of the chore's lock in a shard. The number of an expansion is the batch's
    /// ID, which is positive. The other numbers are negative.
    ///
    /// Each shard has its own locks. If a shard can't be written, the database holds the chore's
    /// lock until it has rolled the transaction back. A lock for all shards would block the chore
    /// in the other shards meanwhile.
    pub fn number(self, shard: Shard) -> i64 {
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
            Self::ForgetEvents => 12,
            Self::JoinInbound => 13,
            Self::ForgetInbound => 14,
            Self::ForgetAlarms => 15,
            Self::Expand(id) => return id.0,
        };
        -(shard.0 * KINDS + kind)
    }
}
