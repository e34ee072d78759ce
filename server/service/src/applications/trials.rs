//! Trials of limits on the messages that an application has sent.

use domain::limit_trial::{SentMessage, highest_spend, refused_by};
use domain::timestamp::DAY_MS;
use domain::{LimitField, Money, Reference, SendLimits};

use super::owned;
use crate::{Applications, zones};
use store::error::Result;
use store::recipients::{self, StoredMessage};

/// The number of days whose messages are tried.
const DAYS: i64 = 7;
/// The maximum number of messages of a trial.
const MESSAGES_MAX: i64 = 20_000;

/// The result of a trial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitTrial {
    /// How many messages each limit would have refused, or let wait, on its own.
    pub refused: Vec<(LimitField, usize)>,
    /// The highest spend of a day. Set if it was tried because the limits have no spend per day.
    pub highest_spend: Option<Money>,
    /// The number of messages in the trial.
    pub messages: usize,
    /// Whether there were more messages, of which only the newest were tried.
    pub is_cut: bool,
}

impl Applications<'_> {
    /// Tries limits on the live messages of the last seven days that one of an account's
    /// applications has sent. Each of the limits is tried on its own. If the spend per day is one
    /// of them but is off, tries the highest spend of these days, unless no message was sent.
    ///
    /// # Errors
    /// `NoSuchApplication`.
    pub async fn try_limits(
        &self,
        account_id: i64,
        reference: Reference,
        limits: &SendLimits,
        fields: &[LimitField],
    ) -> Result<LimitTrial> {
        let mut conn = self.read_of(reference).await?;
        let row = owned(&mut conn, account_id, reference).await?;
        let since = self.now().plus_ms(-DAYS * DAY_MS);
        let found = recipients::sent_since(&mut conn, row.id, since, MESSAGES_MAX + 1).await?;
        drop(conn);
        let most = usize::try_from(MESSAGES_MAX).unwrap_or(usize::MAX);
        let is_cut = found.len() > most;
        let country_code = self.country_code();
        let newest = found.into_iter().take(most);
        let mut sent: Vec<_> = newest.map(|one| sent(one, limits, country_code)).collect();
        sent.reverse();
        let has_spend =
            !fields.contains(&LimitField::SpendPerDay) || limits.spend_per_day.is_some();
        let highest_spend = if has_spend { None } else { highest_spend(&sent) };
        let mut limits = limits.clone();
        limits.spend_per_day = limits.spend_per_day.or(highest_spend);
        let is_tried = |field: &&LimitField| {
            **field != LimitField::SpendPerDay || limits.spend_per_day.is_some()
        };
        let refused = fields.iter().filter(is_tried);
        let refused =
            refused.map(|field| (*field, refused_by(&limits, *field, &sent, country_code)));
        let (refused, messages) = (refused.collect(), sent.len());
        Ok(LimitTrial { refused, highest_spend, messages, is_cut })
    }
}

fn sent(message: StoredMessage, limits: &SendLimits, country_code: &str) -> SentMessage {
    let StoredMessage { at, number, cost } = message;
    let zone = limits.zone.as_deref();
    SentMessage {
        at,
        day: zones::day(zone, at),
        is_quiet: limits
            .quiet_hours
            .is_some_and(|hours| zones::quiet_end(zone, hours, at).is_some()),
        recipient: number.for_carrier(country_code),
        number,
        cost,
    }
}
