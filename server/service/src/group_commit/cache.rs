//! The rows that a process caches between groups. The process makes its optimistic decisions about
//! sends from these rows.

use std::collections::{HashMap, HashSet};

use domain::limits::RecentMessages;
use domain::{
    ApplicationId, ApplicationStatus, Category, Money, PriceHistory, SenderState, VerifyId,
};

use crate::admission::rates::{Allowance, RateKey};
use crate::money::test_money::test_money;
use crate::prices::known::CurrentPrices;
use store::applications::{KeyRow, StoredLimits};
use store::error::{Error, Fault, Result};
use store::group_call::{ApplicationFields, CommitGroup, FoundApplication, GroupAnswer};
use store::idempotency::{KeptAnswer, KeptKey};
use store::opt_outs::OptedOut;
use store::prices::ChangeFields;
use store::recipients::Recipient;

/// The number of cached applications above which the next group starts with none.
const APPLICATIONS_MAX: usize = 65_536;

/// Cached rows, each as of the last call that read or charged it.
#[derive(Default)]
pub(super) struct Cache {
    pub(super) prices: CurrentPrices,
    pub(super) drained: Vec<String>,
    applications: HashMap<ApplicationId, KeyRow>,
    pub(super) in_group: InGroup,
}

/// The rows that calls have read in the current group. A refusal that is based only on these rows
/// needs no call that confirms it.
#[derive(Default)]
pub(super) struct InGroup {
    /// Applications that were looked up, whether or not they exist.
    applications: HashSet<ApplicationId>,
    /// Applications whose rows are corrupt.
    pub(super) unreadable: HashSet<ApplicationId>,
    /// Idempotency keys that were looked up. `kept` has the answers that were stored for them.
    keys: HashSet<KeptKey>,
    pub(super) kept: HashMap<KeptKey, KeptAnswer>,
    /// Recipients that have opted out.
    pub(super) opted_out: HashSet<OptedOut>,
    /// Recipients that got too many messages, with their numbers of messages.
    pub(super) recent: HashMap<Recipient, RecentMessages>,
    /// The verifications whose codes must not be sent.
    pub(super) stale_codes: HashSet<VerifyId>,
    /// Recipients that got a code within the cool-down.
    pub(super) got_codes: HashSet<Recipient>,
    /// Requests that were taken from the keys' rate limits and aren't used yet.
    pub(super) allowance: Option<Allowance>,
}

impl InGroup {
    pub(super) fn has_read(&self, application: ApplicationId) -> bool {
        self.applications.contains(&application)
    }

    /// Uses up a request that was taken from a key's rate limit.
    pub(super) fn use_request(&mut self, key: RateKey) {
        if let Some(allowance) = &mut self.allowance {
            allowance.take(key);
        }
    }

    pub(super) fn has_looked_up(&self, key: &KeptKey) -> bool {
        self.keys.contains(key)
    }
}

impl Cache {
    pub(super) fn application(&self, id: ApplicationId) -> Option<&KeyRow> {
        self.applications.get(&id)
    }

    /// Begins a group and forgets the rows that were read in the previous one.
    pub(super) fn begin_group(&mut self) {
        self.in_group = InGroup::default();
        if self.applications.len() > APPLICATIONS_MAX {
            self.applications.clear();
        }
    }

    /// Updates the cache from the answer to a call.
    pub(super) fn learn(&mut self, call: &CommitGroup, answer: &mut GroupAnswer) {
        if let Some(changes) = answer.prices.take() {
            self.learn_prices(changes);
        }
        if let Some(drained) = &answer.drained {
            self.drained.clone_from(drained);
            return;
        }
        let asked = &call.applications.ids;
        self.in_group.applications.extend(asked.iter().map(|id| ApplicationId(*id)));
        for found in answer.applications.iter().flatten() {
            if let Err(error) = self.learn_application(call, answer, found) {
                tracing::error!(detail = ?error, "an application can't be read");
                self.applications.remove(&found.id);
                self.in_group.unreadable.insert(found.id);
            }
        }
        let keys = &call.keys;
        for index in 0..keys.keys.len() {
            let application_id = ApplicationId(keys.applications[index]);
            // This call stored an answer after it looked the key up. Only the next call returns the
            // answer.
            if keys.answers[index].is_some() && answer.has_charged(application_id) {
                continue;
            }
            let key = KeptKey::of(application_id, keys.tests[index], &keys.keys[index]);
            self.in_group.keys.insert(key);
        }
        self.in_group.kept.extend(kept_answers(answer));
        self.in_group.opted_out.extend(opted_out(answer));
        self.in_group.recent.extend(flooded(answer));
        self.in_group.stale_codes.extend(stale_codes(answer));
        // Other codes to the same recipient needn't be looked up one by one.
        let codes = &call.codes;
        let is_cooling = |index: &usize| {
            let id = VerifyId(codes.ids[*index]);
            codes.resends[*index].is_none() && self.in_group.stale_codes.contains(&id)
        };
        let cooling = (0..codes.ids.len()).filter(is_cooling).map(|index| {
            let application = ApplicationId(codes.applications[index]);
            (application, codes.tests[index] == 1, codes.numbers[index].clone())
        });
        let cooling: Vec<Recipient> = cooling.collect();
        self.in_group.got_codes.extend(cooling);
    }

    /// Caches the prices. If they can't be read, caches none, and no send is accepted.
    fn learn_prices(&mut self, changes: Vec<ChangeFields>) {
        let rows: Result<Vec<_>> = changes.into_iter().map(ChangeFields::read).collect();
        let unreadable = |error| {
            tracing::error!(detail = ?error, "prices can't be read");
            PriceHistory::default()
        };
        let history = rows.map_or_else(unreadable, PriceHistory::new);
        self.prices = CurrentPrices::new(history);
    }

    fn learn_application(
        &mut self,
        call: &CommitGroup,
        answer: &GroupAnswer,
        found: &FoundApplication,
    ) -> Result<()> {
        if let Some(fields) = &found.row {
            let row = key_row(found, fields)?;
            self.applications.insert(found.id, row);
        }
        let Some(row) = self.applications.get_mut(&found.id) else {
            return Ok(());
        };
        (row.balance, row.test_balance) = (found.balance, found.test_balance);
        (row.test_day, row.test_sent, row.paid) = (found.test_day, found.test_sent, found.paid);
        (row.spent_day, row.spent_today) = (found.spent_day, found.spent_today);
        if answer.has_charged(found.id)
            && let Some(index) = call.applications.ids.iter().position(|id| *id == found.id.0)
        {
            let spent = |totals: &[i64]| Money::from_micros(totals[index]);
            let left = |balance: Money, spent| {
                balance.checked_sub(spent).ok_or(Error::Failed(Fault::MoneyOverflow))
            };
            row.balance = left(row.balance, spent(&call.applications.totals))?;
            let test_money = test_money(found.test_balance, found.test_day, call.now);
            row.test_balance = left(test_money, spent(&call.applications.test_totals))?;
            row.test_sent = row.test_sent_on(call.now) + call.applications.tests[index];
            row.test_day = row.test_day.max(call.now.day());
            let (day, more) =
                (call.applications.spend_days[index], spent(&call.applications.totals));
            let total = row.spent_on(day).checked_add(more);
            row.spent_today = total.ok_or(Error::Failed(Fault::MoneyOverflow))?;
            row.spent_day = row.spent_day.max(day);
        }
        Ok(())
    }
}

/// Returns the recipients of sends that have opted out.
pub(super) fn opted_out(answer: &GroupAnswer) -> impl Iterator<Item = OptedOut> {
    let found = answer.opted_out.iter().flatten();
    found.map(|(application_id, test, number)| (*application_id, *test == 1, number.clone()))
}

/// Returns the recipients of sends that got too many messages, with their numbers of messages.
pub(super) fn flooded(answer: &GroupAnswer) -> impl Iterator<Item = (Recipient, RecentMessages)> {
    let found = answer.flooded.iter().flatten();
    found.map(|(application_id, test, number, hour, day)| {
        let recent = RecentMessages { hour: *hour, day: *day };
        ((*application_id, *test == 1, number.clone()), recent)
    })
}

/// Returns the verifications whose codes must not be sent.
pub(super) fn stale_codes(answer: &GroupAnswer) -> impl Iterator<Item = VerifyId> {
    answer.stale_codes.iter().flatten().copied().map(VerifyId)
}

/// Returns the answers that are stored for the idempotency keys of sends.
pub(super) fn kept_answers(answer: &GroupAnswer) -> impl Iterator<Item = (KeptKey, KeptAnswer)> {
    let kept = answer.kept.iter().flatten();
    kept.map(|(application_id, test, key, digest, answer)| {
        let key = KeptKey::of(*application_id, *test, key);
        let (digest, answer) = (digest.clone(), answer.clone());
        (key, KeptAnswer { digest, answer })
    })
}

fn key_row(found: &FoundApplication, fields: &ApplicationFields) -> Result<KeyRow> {
    let (category, status, live_hash, test_hash, sender_state, sender_name, limits) = fields;
    let corrupt = |column: &'static str, value: &str| Fault::Corrupt {
        table: "applications",
        column: column.into(),
        value: value.to_owned(),
    };
    Ok(KeyRow {
        id: found.id,
        category: Category::parse(category).ok_or_else(|| corrupt("category", category))?,
        status: ApplicationStatus::parse(status).ok_or_else(|| corrupt("status", status))?,
        live_hash: live_hash.clone(),
        test_hash: test_hash.clone(),
        sender_state: SenderState::parse(sender_state)
            .ok_or_else(|| corrupt("sender_state", sender_state))?,
        sender_name: sender_name.clone(),
        balance: found.balance,
        test_balance: found.test_balance,
        test_day: found.test_day,
        test_sent: found.test_sent,
        paid: found.paid,
        limits: StoredLimits::read(limits.clone())?,
        spent_day: found.spent_day,
        spent_today: found.spent_today,
    })
}
