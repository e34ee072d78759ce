//! Searches for messages of one application. A path is an index of the messages, or the queue. A
//! search prefers a path that leads to few messages. If the selection also has conditions that the
//! path doesn't check, the search takes bounded steps until the page is full or the time is up.

use std::time::Instant;

use domain::{MessageStatus, Timestamp, ids};

use domain::ids::id_of_day;
use store::error::Result;
use store::query::Conn;
use store::reports::{self, Condition, MessageRow, Path, Selection, Span};
use store::sql::Dialect;
use store::{batches, installation, tally};

/// A path to at most this many messages is good enough.
const FEW: i64 = 1000;
/// The longest queue that is searched for an application's messages. The queue has the rows of all
/// applications, but they are narrow.
const QUEUE_MAX: i64 = 20_000;
/// The number of messages that the first step goes through. Each step is twice as long as the one
/// before.
const FIRST_STEP: i64 = 2000;
/// The number of messages that the longest step goes through. This takes some hundredths of a
/// second.
const STEP_MAX: i64 = 64_000;

/// The result of a search.
pub(super) struct Found {
    /// The messages, newest first. There are at most as many as requested.
    pub(super) rows: Vec<MessageRow>,
    /// Set if the time was up before there were enough messages. The search can continue below this
    /// ID.
    pub(super) resume: Option<i64>,
}

/// Searches until there are as many messages as requested, or until the time is up. Always makes a
/// first step. If the selection has a status, the connection must read from one snapshot.
pub(super) async fn search(
    conn: Conn<'_>,
    mut selection: Selection,
    until: Instant,
) -> Result<Found> {
    selection.span = narrowed(conn, &selection).await?;
    let path = path(conn, &selection).await?;
    let mut search = Search {
        selection: &selection,
        path,
        until,
        step: FIRST_STEP,
        went_on: false,
        rows: Vec::new(),
    };
    let mut resume = None;
    let parts = parts(conn, &selection, path).await?;
    for (place, part) in parts.iter().enumerate() {
        resume = if place > 0 && search.went_on && search.is_over() {
            Some(part.span.below)
        } else {
            search.look_in(conn, part).await?
        };
        if resume.is_some() || search.missing() == 0 {
            break;
        }
    }
    Ok(Found { rows: search.rows, resume })
}

/// Narrows the selection's span of IDs. If an upload is selected, the span is that of its messages.
/// Otherwise, if messages are in tables by day or week, the span goes from the first day with
/// messages to the last.
async fn narrowed(conn: Conn<'_>, selection: &Selection) -> Result<Span> {
    let Span { from, below } = selection.span;
    let (application_id, test) = (selection.application_id, selection.test);
    if below.saturating_sub(from) <= 1 {
        return Ok(selection.span);
    }
    let of_batch = |condition: &Condition| match condition {
        Condition::Batch(id) => Some(*id),
        _ => None,
    };
    let bounds = if let Some(id) = selection.conditions.iter().find_map(of_batch) {
        let ids = batches::messages(conn, application_id, test, id).await?;
        ids.map(|(first, last)| (first, last + 1))
    } else if conn.dialect().is_by_day() {
        let days = tally::first_and_last(conn, application_id, test).await?;
        days.map(|(first, last)| (id_of_day(first), id_of_day(last + 1)))
    } else {
        return Ok(selection.span);
    };
    let (least, end) = bounds.unwrap_or((from, from));
    Ok(Span { from: from.max(least), below: below.min(end) })
}

/// Returns the path to search along: of the conditions' paths, the first that leads to at most
/// [`FEW`] messages, or else the first.
async fn path(conn: Conn<'_>, selection: &Selection) -> Result<Path> {
    let Span { from, below } = selection.span;
    let paths: Vec<Path> = selection.conditions.iter().filter_map(Condition::path).collect();
    match paths.as_slice() {
        // The span has room for a single message.
        _ if below.saturating_sub(from) <= 1 => Ok(Path::Application),
        [] if is_queued(selection) && reports::queued(conn, QUEUE_MAX + 1).await? <= QUEUE_MAX => {
            Ok(Path::Queue)
        }
        [] => Ok(Path::Application),
        [path] => Ok(*path),
        [first, ..] => {
            for path in &paths {
                if leads_to_few(conn, selection, *path).await? {
                    return Ok(*path);
                }
            }
            Ok(*first)
        }
    }
}

/// Whether every selected message has a row in the queue.
fn is_queued(selection: &Selection) -> bool {
    use MessageStatus::{Queued, Sending};
    let has = |status| selection.conditions.contains(&Condition::Status(status));
    has(Queued) || has(Sending)
}

async fn leads_to_few(conn: Conn<'_>, selection: &Selection, path: Path) -> Result<bool> {
    let mut left = FEW + 1;
    for span in reports::spans(conn.dialect(), selection.span) {
        left -= reports::count(conn, selection, path, span, left).await?.n;
        if left <= 0 {
            return Ok(false);
        }
    }
    Ok(true)
}

/// A span of IDs to search.
struct Part {
    span: Span,
    /// The maximum number of matching messages that the span can have, if known.
    at_most: Option<usize>,
}

/// Returns the spans to search, newest first.
async fn parts(conn: Conn<'_>, selection: &Selection, path: Path) -> Result<Vec<Part>> {
    let [Condition::Status(status)] = selection.conditions.as_slice() else {
        return Ok(unknown_parts(conn.dialect(), selection));
    };
    let Span { from, below } = selection.span;
    if path != Path::Application || from >= below {
        return Ok(unknown_parts(conn.dialect(), selection));
    }
    // The counts by day show which days have such messages. The search skips days whose messages
    // were dropped, because their counts remain.
    let from = from.max(installation::history_low(conn).await?);
    let day = |id| Timestamp::from_unix_ms(ids::id_unix_ms(id)).day();
    let owner = (selection.application_id, selection.test);
    let days = tally::days_of_status(conn, owner, *status, day(from), day(below - 1)).await?;
    let part = |(day, n): (i64, i64)| {
        let end = id_of_day(day + 1);
        Part {
            span: Span { from: from.max(id_of_day(day)), below: below.min(end) },
            // If the span leaves out the newest messages of the day, the count says nothing about
            // the rest.
            at_most: usize::try_from(n).ok().filter(|_| below >= end),
        }
    };
    Ok(days.into_iter().map(part).collect())
}

fn unknown_parts(dialect: Dialect, selection: &Selection) -> Vec<Part> {
    let part = |span| Part { span, at_most: None };
    let spans = reports::spans(dialect, selection.span);
    spans.into_iter().map(part).collect()
}

/// A search in progress.
struct Search<'a> {
    selection: &'a Selection,
    path: Path,
    until: Instant,
    /// The number of messages along the path that the next step goes through.
    step: i64,
    /// Whether the previous part had messages along the path. A part without messages takes no
    /// time.
    went_on: bool,
    rows: Vec<MessageRow>,
}

impl Search<'_> {
    fn missing(&self) -> i64 {
        let found = i64::try_from(self.rows.len()).unwrap_or(i64::MAX);
        (self.selection.limit - found).max(0)
    }

    fn is_over(&self) -> bool {
        Instant::now() >= self.until
    }

    /// Whether the path also leads to messages that don't match.
    fn is_filtered(&self) -> bool {
        let conditions = self.selection.conditions.iter();
        let others = conditions.filter(|condition| condition.path() != Some(self.path));
        // The queue is short, so all of it can be searched.
        self.path != Path::Queue && others.count() > 0
    }

    /// Searches a part until there are enough messages. If the time is up first, returns the ID
    /// below which the part wasn't searched.
    async fn look_in(&mut self, conn: Conn<'_>, part: &Part) -> Result<Option<i64>> {
        let Span { from, mut below } = part.span;
        if from >= below || !self.is_filtered() {
            self.read(conn, part.span).await?;
            return Ok(None);
        }
        let before = self.rows.len();
        loop {
            let end = self.step_end(conn, Span { from, below }).await?;
            self.read(conn, Span { from: end, below }).await?;
            let all = part.at_most.is_some_and(|n| self.rows.len() - before >= n);
            if end <= from || all || self.missing() == 0 {
                return Ok(None);
            }
            if self.is_over() {
                return Ok(Some(end));
            }
            below = end;
            self.step = (self.step * 2).min(STEP_MAX);
        }
    }

    /// Returns the smallest ID of the next step.
    async fn step_end(&mut self, conn: Conn<'_>, span: Span) -> Result<i64> {
        let counted = reports::count(conn, self.selection, self.path, span, self.step).await?;
        self.went_on = counted.n > 0;
        Ok(match counted.least {
            Some(least) if counted.n >= self.step => least,
            _ => span.from,
        })
    }

    async fn read(&mut self, conn: Conn<'_>, span: Span) -> Result<()> {
        let found = reports::list(conn, self.selection, self.path, span, self.missing()).await?;
        self.rows.extend(found);
        Ok(())
    }
}
