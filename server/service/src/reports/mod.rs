//! Reports about messages.

pub(crate) mod figures;
pub(crate) mod margins;
mod scheduled;
mod search;
pub(crate) mod settled;
pub(crate) mod shares;

use std::time::Instant;

use domain::ids::Shard;
use domain::number::LOCAL_DIGITS;
use domain::pricing::cost_at;
use domain::records::{
    ChargeRecord, MessageDetail, MessageRecord, Paged, SYSTEM_KIND, TimelineEntry,
};
use domain::{
    ApplicationId, BatchId, KeyKind, Kind, MessageStatus, Money, Number, PriceHistory, Reference,
    Timestamp, Transid, ids,
};

use crate::Messages;
use crate::admission::KeyAccess;
use crate::applications::{chosen, owned_ids};
use search::{Found, search};
use shares::Searcher;
use store::batches;
use store::error::{Error, Refusal, Result};
use store::query::{At, Conn, Connection};
use store::recent::MessageLocation;
use store::reports::{Condition, MessageRow, Selection, Span};

/// The maximum number of messages on a page.
const LIMIT_MAX: i64 = 1000;

/// Selects the messages of a list. A message must meet all conditions that are set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MessageFilter {
    pub transid: Option<Transid>,
    pub requestid: Option<String>,
    pub batchid: Option<BatchId>,
    /// Only messages to this number, in any form. A number of the home country is stored as it was
    /// sent, with the country code or without it.
    pub number: Option<Number>,
    pub status: Option<MessageStatus>,
    /// Only messages accepted at or after this time.
    pub from: Option<Timestamp>,
    /// Only messages accepted before this time.
    pub to: Option<Timestamp>,
    /// Only messages sent with this kind of key, for callers who may see both kinds.
    pub key: Option<KeyKind>,
    /// The maximum number of messages on the page, 1 to 1,000.
    pub limit: i64,
    /// The `next` of an earlier page.
    pub cursor: Option<String>,
}

impl Messages<'_> {
    /// Returns a page of the messages that a key may see, newest first. The page is full or the
    /// last one, unless the search took longer than [`crate::Limits::report_time`]. In that case
    /// the page has the messages found so far, possibly none, and its cursor continues from there.
    ///
    /// # Errors
    /// `InvalidCursor`. `Failed` if too many searches are running. The caller can retry later.
    pub async fn list(
        &self,
        access: &KeyAccess,
        filter: &MessageFilter,
    ) -> Result<Paged<MessageRecord>> {
        let searcher = Searcher::Application(access.application_id.0);
        let _permit = self.inner.searches.take(searcher).await?;
        let shard = self.shard_of(access.reference).await?;
        let mut conn = self.report_connection(shard, filter).await?;
        let test = access.kind == KeyKind::Test;
        let selections = self.selections(access.application_id, test, filter)?;
        self.merged(conn.as_mut(), selections).await
    }

    /// Returns a message that a key may see.
    pub async fn message(
        &self,
        access: &KeyAccess,
        transid: Transid,
    ) -> Result<Option<MessageDetail>> {
        let mut conn = self.read_of(access.reference).await?;
        let test = access.kind == KeyKind::Test;
        self.detail(&mut conn, access.application_id, test, transid).await
    }

    /// Returns a page of the messages of one of an account's applications, or of all of them,
    /// including test messages.
    ///
    /// # Errors
    /// `NoSuchApplication`, `InvalidCursor`.
    pub async fn account_messages(
        &self,
        account_id: i64,
        reference: Option<Reference>,
        filter: &MessageFilter,
    ) -> Result<Paged<MessageRecord>> {
        let _permit = self.inner.searches.take(Searcher::Account(account_id)).await?;
        let shard = self.shard_of_account(account_id).await?;
        let mut conn = self.report_connection(shard, filter).await?;
        let mut selections = Vec::new();
        for id in owned_ids(conn.as_mut(), account_id, reference).await? {
            for test in tests(filter.key) {
                selections.extend(self.selections(id, test, filter)?);
            }
        }
        self.merged(conn.as_mut(), selections).await
    }

    /// Returns a message of an account, and the application that sent it.
    pub async fn account_message(
        &self,
        account_id: i64,
        transid: Transid,
    ) -> Result<Option<(Reference, MessageDetail)>> {
        let mut conn = self.read_of_account(account_id).await?;
        for owned in chosen(&mut conn, account_id, None).await? {
            for test in tests(None) {
                if let Some(found) = self.detail(&mut conn, owned.id, test, transid).await? {
                    return Ok(Some((owned.reference, found)));
                }
            }
        }
        Ok(None)
    }

    /// Returns a connection for a list. If the list is filtered by status, its counts and messages
    /// must come from one snapshot.
    async fn report_connection(
        &self,
        shard: Shard,
        filter: &MessageFilter,
    ) -> Result<Box<dyn Connection>> {
        Ok(if filter.status.is_some() {
            let conn = self.store().snapshot().await?;
            Box::new(At { conn, shard })
        } else {
            Box::new(self.store().read_at(shard).await?)
        })
    }

    /// Returns a selection for each form of the filter's number, because each one is looked up in
    /// the index by itself.
    fn selections(
        &self,
        application_id: ApplicationId,
        test: bool,
        filter: &MessageFilter,
    ) -> Result<Vec<Selection>> {
        let forms = filter.number.as_ref().map(|number| number.forms(self.country_code()));
        let forms = forms.into_iter().flatten().map(|number| number.digits().to_owned());
        let mut forms: Vec<_> = forms.map(Some).collect();
        if forms.is_empty() {
            forms.push(None);
        }
        let select = |digits| selection(application_id, test, filter, digits);
        forms.into_iter().map(select).collect()
    }

    async fn detail(
        &self,
        conn: Conn<'_>,
        application_id: ApplicationId,
        test: bool,
        transid: Transid,
    ) -> Result<Option<MessageDetail>> {
        let location = MessageLocation { application_id, test, transid };
        match row_at(conn, location).await? {
            Some(row) => self.detail_of(conn, row).await.map(Some),
            None => Ok(None),
        }
    }

    /// Returns a message with its timeline and charge.
    pub(crate) async fn detail_of(&self, conn: Conn<'_>, row: MessageRow) -> Result<MessageDetail> {
        let record = &row.record;
        let mut entries = store::timeline::list(conn, record.transid, row.application_id).await?;
        if let (MessageStatus::Cancelled, Some(batch), Some(at)) =
            (record.status, record.batchid, record.final_at)
            && let Some(by) = batches::cancelled_by(conn, batch).await?
            && entries.iter().all(|entry| entry.status != MessageStatus::Cancelled)
        {
            let detail = Some(format!("the batch was cancelled {by}"));
            entries.push(TimelineEntry { status: record.status, at, detail });
        }
        let prices = self.money().price_history(conn).await?;
        let charge =
            charge(&row, &prices).ok_or(Error::Failed(store::error::Fault::MoneyOverflow))?;
        Ok(MessageDetail { timeline: timeline(&row, entries), charge, record: row.record })
    }

    /// Returns a page of the newest messages of all selections. An account has few applications, so
    /// each selection is searched by itself.
    async fn merged(
        &self,
        conn: Conn<'_>,
        selections: Vec<Selection>,
    ) -> Result<Paged<MessageRecord>> {
        let end = Instant::now() + self.limits().report_time;
        let searches = u32::try_from(selections.len()).unwrap_or(u32::MAX);
        let mut newest = Newest::default();
        for (left, mut selection) in (1..=searches).rev().zip(selections) {
            let started = Instant::now();
            // Each search may take an equal share of the time that is left.
            let share = end.saturating_duration_since(started) / left;
            newest.limit = selection.limit;
            selection.span.from = selection.span.from.max(newest.floor());
            let found = search(conn, selection, started + share).await?;
            newest.add(found);
        }
        Ok(newest.page())
    }
}

/// Returns the values of the column `test` for this kind of key, or both values for `None`.
pub(crate) fn tests(key: Option<KeyKind>) -> impl Iterator<Item = bool> {
    let wanted = key.map(|key| key == KeyKind::Test);
    [false, true].into_iter().filter(move |test| wanted.is_none_or(|wanted| wanted == *test))
}

/// Returns the message at this location, if there is one.
pub(crate) async fn row_at(
    conn: Conn<'_>,
    location: MessageLocation,
) -> Result<Option<MessageRow>> {
    let filter =
        MessageFilter { transid: Some(location.transid), limit: 1, ..MessageFilter::default() };
    let selection = selection(location.application_id, location.test, &filter, None)?;
    let found = search(conn, selection, Instant::now()).await?;
    Ok(found.rows.into_iter().next())
}

/// Returns what a filter selects. `digits` are those of its number, as stored.
fn selection(
    application_id: ApplicationId,
    test: bool,
    filter: &MessageFilter,
    digits: Option<String>,
) -> Result<Selection> {
    let (mut from, mut below) = (0, i64::MAX);
    if let Some(time) = filter.from {
        from = from.max(first_id(time));
    }
    if let Some(time) = filter.to {
        below = below.min(first_id(time));
    }
    if let Some(cursor) = &filter.cursor {
        below = below.min(Transid::parse(cursor).ok_or(Refusal::InvalidCursor)?.0);
    }
    if let Some(Transid(id)) = filter.transid {
        from = from.max(id);
        below = below.min(id.saturating_add(1));
    }
    let conditions = [
        filter.requestid.clone().map(Condition::Requestid),
        digits.map(Condition::Number),
        filter.status.map(Condition::Status),
        filter.batchid.map(Condition::Batch),
    ];
    Ok(Selection {
        application_id,
        test,
        span: Span { from, below },
        conditions: conditions.into_iter().flatten().collect(),
        // The search looks for one message more than fits on the page. If it finds that one, there
        // is a next page.
        limit: filter.limit.clamp(1, LIMIT_MAX) + 1,
    })
}

/// Returns the smallest ID that a message or an event of this time can have. An ID contains its
/// time in milliseconds.
pub(crate) fn first_id(time: Timestamp) -> i64 {
    // Times before the first ID get the smallest ID. Times after the greatest ID get an ID that no
    // message has.
    let bounds = (ids::id_unix_ms(0), ids::id_unix_ms(i64::MAX));
    if time.unix_ms() > bounds.1 {
        return i64::MAX;
    }
    ids::compose_id(time.unix_ms().max(bounds.0), 0)
}

/// The newest messages that several searches have found.
#[derive(Default)]
struct Newest {
    /// The messages, newest first. There are at most `limit`.
    rows: Vec<MessageRow>,
    /// The number of messages to find. It is one more than a page has.
    limit: i64,
    /// Set if a search ended early. The newest messages below this ID aren't known yet, because
    /// that search may find more.
    resume: Option<i64>,
}

impl Newest {
    fn is_full(&self) -> bool {
        i64::try_from(self.rows.len()).is_ok_and(|found| found >= self.limit)
    }

    /// Returns the smallest ID that further searches need to look at.
    fn floor(&self) -> i64 {
        let last = self.rows.last().filter(|_| self.is_full());
        let last = last.map(|row| row.record.transid.0);
        last.max(self.resume).unwrap_or(0)
    }

    fn add(&mut self, found: Found) {
        self.resume = self.resume.max(found.resume);
        let resume = self.resume;
        self.rows.extend(found.rows);
        self.rows.retain(|row| resume.is_none_or(|end| row.record.transid.0 >= end));
        self.rows.sort_unstable_by_key(|row| std::cmp::Reverse(row.record.transid));
        self.rows.truncate(usize::try_from(self.limit).unwrap_or(usize::MAX));
    }

    fn page(mut self) -> Paged<MessageRecord> {
        let full = self.is_full();
        if full {
            self.rows.pop();
        }
        let last = self.rows.last().filter(|_| full);
        let last = last.map(|row| row.record.transid);
        let next = last.or(self.resume.map(Transid)).map(|id| id.to_string());
        Paged { items: self.rows.into_iter().map(|row| row.record).collect(), next }
    }
}

/// Returns the steps from the message's own row and the stored entries, in order of time.
fn timeline(row: &MessageRow, entries: Vec<TimelineEntry>) -> Vec<TimelineEntry> {
    let record = &row.record;
    let step = |status, at: Option<Timestamp>, detail: Option<String>| {
        at.map(|at| TimelineEntry { status, at, detail })
    };
    let by = row.carrier.as_ref().map(|carrier| format!("taken by {carrier}"));
    let last = record.final_at.and_then(|at| step(record.status, Some(at), record.error.clone()));
    let accepted = Some(record.created_at);
    // The rows of a scheduled batch become messages at its time, so their timeline never begins
    // with `scheduled`.
    let first = match record.send_at.filter(|at| *at > record.created_at) {
        Some(at) => step(MessageStatus::Scheduled, accepted, Some(format!("scheduled for {at}"))),
        None => step(MessageStatus::Queued, accepted, None),
    };
    // If the message was cancelled on its own, not with its batch, an entry says who cancelled it.
    let is_cancelled = |entry: &TimelineEntry| entry.status == MessageStatus::Cancelled;
    let last = last.filter(|_| !entries.iter().any(is_cancelled));
    let own = [
        first,
        step(MessageStatus::Sending, row.sending_at, None),
        step(MessageStatus::Submitted, record.submitted_at, by),
        last,
    ];
    let mut steps: Vec<_> = own.into_iter().flatten().chain(entries).collect();
    steps.sort_by_key(|step| step.at);
    steps
}

/// Explains how the price of a message was calculated. Returns `None` if the stored price can't be
/// right.
fn charge(row: &MessageRow, prices: &PriceHistory) -> Option<ChargeRecord> {
    let record = &row.record;
    let number = Number::from_stored(record.number.clone(), record.kind);
    let (pages, unit_price, charged) = (record.pages, row.unit_price, record.cost);
    if cost_at(unit_price, usize::try_from(pages).ok()?)? != charged {
        return None;
    }
    if record.is_reply() {
        let why = "The reply to a command about opt-outs is free.".to_owned();
        let (rule, released) = (SYSTEM_KIND.to_owned(), Money::ZERO);
        return Some(ChargeRecord { rule, pages, unit_price, charged, released, why });
    }
    let kind = match record.kind {
        Kind::Local => "a local number (8 digits)",
        Kind::International if record.number.chars().count() == LOCAL_DIGITS => {
            "an international number (8 digits, but with a +)"
        }
        Kind::International => "an international number (not 8 digits)",
    };
    let fate = match (record.released > Money::ZERO, record.status.is_final()) {
        (true, _) if record.status == MessageStatus::Cancelled => {
            "You weren't charged, because the message was cancelled."
        }
        (true, _) => "You weren't charged, because no carrier accepted the message.",
        (false, true) if record.submitted_at.is_none() => {
            "The charge stands, because a carrier may have accepted the message."
        }
        (false, true) => "The charge stands, because a carrier accepted the message.",
        (false, false) => "You aren't charged if no carrier accepts the message.",
    };
    let pages_word = if pages == 1 { "page" } else { "pages" };
    let price = prices.explain(&number, record.created_at, unit_price);
    let begins = (price.prefix.as_ref()).map(|prefix| format!(", which begins with {prefix},"));
    let begins = begins.unwrap_or_default();
    let why = format!("{pages} {pages_word} to {kind}{begins} at {unit_price} each. {fate}");
    let (rule, released) = (price.rule(&number), record.released);
    Some(ChargeRecord { rule, pages, unit_price, charged, released, why })
}
