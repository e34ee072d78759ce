//! Opt-outs: the numbers that an application may not send to. The lists of its live key and of its
//! test key are separate.

pub(crate) mod numbers;
pub(crate) mod settings;

use domain::history::HistoryAction;
use domain::records::Paged;
use domain::{EventStream, Number, OptOutRecord, OptOutSource, Timestamp, ids, opt_out};
use serde::{Deserialize, Serialize};

use self::numbers::NumberList;
use crate::admission::KeyAccess;
use crate::admission::idempotency::{Digest, IdempotencyKey, Once};
use crate::application_events::Cause;
use crate::transactions::work;
use crate::{Applications, Service};
use store::audit::{self, Actor};
use store::error::{Refusal, Result};
use store::opt_outs::OptOut;
use store::query::Conn;
use store::{Tx, applications, opt_outs};

/// The maximum number of opt-outs on a page.
const PAGE_MAX: i64 = 1000;
/// The maximum number of numbers that one transaction adds, which takes a few milliseconds.
const ADD_MAX: usize = 500;
/// The beginning of a cursor.
const CURSOR: &str = "o_";

/// Selects opt-outs of a list.
#[derive(Clone, Debug, Default)]
pub struct OptOutFilter {
    pub number: Option<Number>,
    /// The maximum number of opt-outs on the page, 1 to 1,000.
    pub limit: i64,
    /// The `next` of an earlier page.
    pub cursor: Option<String>,
}

pub enum OptOutChange {
    Add(Number),
    Remove(Number),
    /// Adds the numbers of a file.
    Import {
        numbers: NumberList,
        rows: u64,
        digest: Vec<u8>,
        /// The upload slot that the file holds until its numbers are stored.
        slot: Box<dyn Send + Sync>,
    },
}

/// Who changes a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptOutAuthor {
    /// A program, with an API key. The audit log records what it removes.
    Program,
    /// The owner's account, in the portal. The audit log records every change.
    Owner(i64),
}

/// The outcome of a change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedOptOuts {
    /// The number of numbers in the request.
    pub rows: u64,
    /// How many of them weren't on the list before.
    pub added: u64,
    /// How many of them were removed.
    pub removed: u64,
    /// Whether an earlier request with the same idempotency key made the change.
    #[serde(skip)]
    pub replayed: bool,
}

impl Applications<'_> {
    /// Returns a page of the opt-outs that apply to a key, newest first.
    ///
    /// # Errors
    /// `InvalidCursor`.
    pub async fn opt_outs(
        &self,
        access: &KeyAccess,
        filter: &OptOutFilter,
    ) -> Result<Paged<OptOutRecord>> {
        let below = match &filter.cursor {
            Some(cursor) => ids::decode_id(CURSOR, cursor).ok_or(Refusal::InvalidCursor)?,
            None => i64::MAX,
        };
        let limit = filter.limit.clamp(1, PAGE_MAX);
        let (list, shard) = (access.stream(), self.shard_of(access.reference).await?);
        let mut conn = self.store().read_at(shard).await?;
        let found = match &filter.number {
            Some(number) => {
                let number = number.for_carrier(self.country_code());
                let found = found(self.0, &mut conn, list, &number).await?;
                found.into_iter().map(|(_, found)| found).filter(|found| found.id < below).collect()
            }
            None => opt_outs::list(&mut conn, list, below, limit + 1).await?,
        };
        let page = Paged::of(found, limit, |last| ids::encode_id(CURSOR, last.id));
        let items = page.items.into_iter().map(|found| found.record).collect();
        Ok(Paged { items, next: page.next })
    }

    /// Changes the opt-outs that apply to a key. Numbers of a file are added some at a time. If
    /// that fails, the request can be repeated.
    ///
    /// # Errors
    /// `IdempotencyMismatch`.
    pub async fn change_opt_outs(
        &self,
        access: &KeyAccess,
        change: OptOutChange,
        author: OptOutAuthor,
        key: Option<&IdempotencyKey>,
    ) -> Result<ChangedOptOuts> {
        let code = self.country_code();
        let once = key.map(|key| Once::new(access.stream(), key, change.digest(code)));
        let note = change.note(access, author);
        let Parsed { numbers, is_added, rows, slot: _slot } = change.numbers(code);
        let mut changed = ChangedOptOuts { rows, ..ChangedOptOuts::default() };
        let mut chunks = numbers.chunks(ADD_MAX).enumerate().peekable();
        while let Some((index, numbers)) = chunks.next() {
            let is_last = chunks.peek().is_none();
            let (service, list, source) = (self.0.clone(), access.stream(), author.source());
            let (once, note) = (once.clone(), note.clone());
            changed = self
                .in_transaction_of(
                    access.reference,
                    work!(|tx, now| {
                        if let Some(once) = once.as_ref().filter(|_| index == 0)
                            && let Some(answered) = once.answered::<ChangedOptOuts>(tx, now).await?
                        {
                            return Ok(ChangedOptOuts { replayed: true, ..answered });
                        }
                        if is_added {
                            changed.added += add(&service, tx, list, &numbers, source, now).await?;
                        } else {
                            changed.removed +=
                                remove(&service, tx, list, &numbers, source, now).await?;
                        }
                        if let Some(note) = note.filter(|_| index == 0) {
                            note.write(tx, changed.added + changed.removed, now).await?;
                        }
                        if let Some(once) = once.filter(|_| is_last) {
                            once.keep(tx, &changed, now).await?;
                        }
                        Ok(changed)
                    }),
                )
                .await?;
            if changed.replayed {
                break;
            }
        }
        Ok(changed)
    }
}

/// Adds numbers to a list, in the caller's transaction, with their events. The numbers are as
/// carriers get them. Returns how many weren't on the list.
pub(crate) async fn add(
    service: &Service,
    tx: &mut Tx<'_>,
    list: EventStream,
    numbers: &[String],
    source: OptOutSource,
    now: Timestamp,
) -> Result<u64> {
    let new = numbers.iter().map(|number| (number.clone(), service.next_id(now)));
    let added = opt_outs::add(tx, list, &new.collect::<Vec<_>>(), source).await?;
    let count = added.len() as u64;
    for record in added {
        Cause::OptOut { is_added: true, record }.put_in(tx, list, now);
    }
    Ok(count)
}

/// Removes numbers from a list, in the caller's transaction, with their events. The numbers are as
/// carriers get them. Returns how many were on the list.
pub(crate) async fn remove(
    service: &Service,
    tx: &mut Tx<'_>,
    list: EventStream,
    numbers: &[String],
    source: OptOutSource,
    now: Timestamp,
) -> Result<u64> {
    let mut count = 0;
    for number in numbers {
        let mut removed = None;
        for (stored_as, found) in found(service, tx, list, number).await? {
            if opt_outs::remove(tx, list, &stored_as).await? {
                removed = Some(found.record);
            }
        }
        if let Some(found) = removed {
            count += 1;
            let record = OptOutRecord { number: Some(number.clone()), source, ..found };
            Cause::OptOut { is_added: false, record }.put_in(tx, list, now);
        }
    }
    Ok(count)
}

/// Returns the opt-outs of a number, each with the stored form of the number: the number itself, or
/// its hash if it was erased. If an erased number was added again, both forms are stored.
async fn found(
    service: &Service,
    conn: Conn<'_>,
    list: EventStream,
    number: &str,
) -> Result<Vec<(String, OptOut)>> {
    let mut stored_as = vec![number.to_owned()];
    // If no number was erased, there may be no key yet.
    if !opt_outs::erased(conn, list).await?.is_empty() {
        stored_as.push(opt_out::erased(&service.accounts().erased_key().await?, number));
    }
    let mut all = Vec::new();
    for number in stored_as {
        all.extend(opt_outs::one(conn, list, &number).await?.map(|found| (number, found)));
    }
    Ok(all)
}

/// An entry of the audit log. Of a number, it has only the last three digits.
#[derive(Clone)]
struct Note {
    access: KeyAccess,
    author: OptOutAuthor,
    action: HistoryAction,
    detail: String,
}

impl Note {
    /// Writes the entry in the transaction of the change, unless the change had no effect. The
    /// import of a file has its entry in its first transaction.
    async fn write(self, tx: &mut Tx<'_>, changed: u64, now: Timestamp) -> Result<()> {
        let Self { access, author, action, detail } = self;
        if changed == 0 && action != HistoryAction::OptOutsImported {
            return Ok(());
        }
        let account_id = match author {
            OptOutAuthor::Owner(id) => id,
            OptOutAuthor::Program => {
                applications::owner(tx, access.application_id).await?.account_id
            }
        };
        let (actor, subject) = (Actor::Account(account_id), access.reference.to_string());
        audit::insert(tx, now, &actor, action.as_str(), &subject, Some(&detail)).await
    }
}

/// A change, with its numbers as carriers get them.
struct Parsed {
    numbers: NumberList,
    /// Whether the numbers are added. Otherwise they are removed.
    is_added: bool,
    rows: u64,
    /// The upload slot of a file.
    slot: Option<Box<dyn Send + Sync>>,
}

impl OptOutChange {
    fn digest(&self, country_code: &str) -> Digest {
        let mut digest = Digest::new("opt-outs");
        match self {
            Self::Add(number) => digest.text(&format!("add {}", number.for_carrier(country_code))),
            Self::Remove(number) => {
                digest.text(&format!("remove {}", number.for_carrier(country_code)));
            }
            Self::Import { digest: file, .. } => digest.bytes(file),
        }
        digest
    }

    /// Returns the audit entry of the change. A program's additions have none, because there may be
    /// many of them.
    fn note(&self, access: &KeyAccess, author: OptOutAuthor) -> Option<Note> {
        let by = match author {
            OptOutAuthor::Owner(_) => "",
            OptOutAuthor::Program => " by API",
        };
        let (action, detail) = match self {
            Self::Add(_) if author == OptOutAuthor::Program => return None,
            Self::Add(number) => (HistoryAction::OptOutAdded, number.masked()),
            Self::Remove(number) => (HistoryAction::OptOutRemoved, number.masked()),
            Self::Import { rows, .. } => (HistoryAction::OptOutsImported, format!("{rows} rows")),
        };
        Some(Note { access: *access, author, action, detail: detail + by })
    }

    fn numbers(self, country_code: &str) -> Parsed {
        let one = |number: &Number, is_added| Parsed {
            numbers: NumberList::of(number, country_code),
            is_added,
            rows: 1,
            slot: None,
        };
        match self {
            Self::Add(number) => one(&number, true),
            Self::Remove(number) => one(&number, false),
            Self::Import { numbers, rows, slot, .. } => {
                Parsed { numbers, is_added: true, rows, slot: Some(slot) }
            }
        }
    }
}

impl OptOutAuthor {
    const fn source(self) -> OptOutSource {
        match self {
            Self::Program => OptOutSource::Api,
            Self::Owner(_) => OptOutSource::Portal,
        }
    }
}
