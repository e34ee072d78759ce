//! Prices: setting them, and finding the price of a number.

pub(crate) mod known;

use std::sync::Arc;

use domain::records::{NumberPrice, PriceChangeRecord, PriceList, PriceTable};
use domain::{
    Kind, Money, Number, PriceChange, PriceHistory, PriceRow, PriceStep, PricesInForce, Timestamp,
};

use crate::Verb;
use crate::support::audit::name_accounts;
use crate::transactions::work;
use store::audit::{self, Actor, Change};
use store::error::{Refusal, Result};
use store::query::Conn;
use store::{installation, prices};

impl crate::Money<'_> {
    /// Returns the currency and the current base prices.
    pub async fn price_list(&self) -> Result<PriceList> {
        let mut conn = self.store().read().await?;
        let currency = installation::currency(&mut conn).await?;
        let (_, prices) = self.inner.prices.read(&mut conn, self.now()).await?;
        Ok(PriceList { currency, prices: prices.base() })
    }

    /// Returns the current price of a page to a local number.
    pub async fn local_price(&self) -> Result<Money> {
        let mut conn = self.store().read().await?;
        let (_, prices) = self.inner.prices.read(&mut conn, self.now()).await?;
        Ok(prices.base().local)
    }

    /// Returns all prices that are in force and all that are set for later.
    pub async fn price_table(&self) -> Result<PriceTable> {
        let mut conn = self.store().read().await?;
        let currency = installation::currency(&mut conn).await?;
        let history = self.price_history(&mut conn).await?;
        let (in_force, coming) = history.listed(history.time(self.now()));
        Ok(PriceTable { currency, in_force, coming })
    }

    /// Returns all price changes ever made, newest first, with the emails of their authors.
    pub async fn price_changes(&self) -> Result<Vec<PriceChangeRecord>> {
        let mut conn = self.store().read().await?;
        let mut changes = prices::records(&mut conn).await?;
        name_accounts(&mut conn, changes.iter_mut().map(|change| &mut change.set_by)).await?;
        changes.reverse();
        Ok(changes)
    }

    /// Returns the current price of a page to a number, and the reason for it.
    pub async fn price_of(&self, number: &Number) -> Result<NumberPrice> {
        let currency = installation::currency(&mut self.store().read().await?).await?;
        let prices = self.prices_now().await?;
        let price = prices.unit_price(number);
        let why = match (&price.prefix, number.kind()) {
            (Some(prefix), _) => {
                format!("The number begins with {prefix}, its longest prefix that has a price.")
            }
            (None, Kind::Local) => "The number is local: it has 8 digits and no +.".to_owned(),
            (None, Kind::International) => {
                "The number is international, and none of its prefixes has a price.".to_owned()
            }
        };
        Ok(NumberPrice { rule: price.rule(number), price, currency, why })
    }

    /// Returns the effect that a change of the prices would have from a time on, or at once without
    /// a time.
    ///
    /// # Errors
    /// Those of [`PriceHistory::judge`].
    pub async fn price_steps(
        &self,
        change: &PriceChange,
        from: Option<Timestamp>,
    ) -> Result<Vec<PriceStep>> {
        let history = self.price_history(&mut self.store().read().await?).await?;
        let now = history.time(self.now());
        let from = from.unwrap_or(now);
        history.judge(change, from, now)?;
        Ok(history.steps(change, from))
    }

    /// Sets a price from a time on, or at once without a time. Returns the time from which the
    /// price is in force.
    ///
    /// # Errors
    /// `OwnPrices`, and those of [`PriceHistory::judge`].
    pub async fn set_price(
        &self,
        actor: &Actor,
        change: PriceChange,
        from: Option<Timestamp>,
    ) -> Result<Timestamp> {
        let verb = self.setting_price(*actor, change, from).await?;
        self.in_transaction(verb).await
    }

    /// Returns the verb that sets a price.
    pub(crate) async fn setting_price(
        &self,
        actor: Actor,
        change: PriceChange,
        from: Option<Timestamp>,
    ) -> Result<Verb<Timestamp>> {
        if let Actor::Account(id) = actor
            && !self.limits().own_applications
            && !self.applications().of_account(id).await?.is_empty()
        {
            return Err(Refusal::OwnPrices.into());
        }
        Ok(Box::new(work!(|tx, now| {
            let history = prices::history(tx).await?;
            let now = history.time(now);
            let from = from.unwrap_or(now);
            history.judge(&change, from, now)?;
            prices::insert(tx, &change, from, (now, &actor.to_string())).await?;
            let (subject, before, detail) = audited(&history, &change, from);
            let after = shown(&change);
            let change = Change::of(&before, &after).because(Some(&detail));
            audit::insert_change(tx, now, &actor, "price.set", &subject, change).await?;
            Ok(from)
        })))
    }

    pub(crate) async fn prices_now(&self) -> Result<Arc<PricesInForce>> {
        let mut conn = self.store().read().await?;
        let (_, prices) = self.inner.prices.read(&mut conn, self.now()).await?;
        Ok(prices)
    }

    pub(crate) async fn price_history(&self, conn: Conn<'_>) -> Result<Arc<PriceHistory>> {
        let version = prices::version(conn).await?;
        self.inner.prices.history(conn, version).await
    }
}

/// Describes what a change sets, for the audit log.
fn shown(change: &PriceChange) -> String {
    match change {
        PriceChange::Base(prices) => {
            format!("local {}, international {}", prices.local, prices.international)
        }
        PriceChange::Prefix(_, Some(price)) => price.to_string(),
        PriceChange::Prefix(_, None) => "none".to_owned(),
        PriceChange::Cancel(id) => format!("change {id} cancelled"),
    }
}

/// Returns a change's subject, the state before it, and its detail, for the audit log.
fn audited(
    history: &PriceHistory,
    change: &PriceChange,
    from: Timestamp,
) -> (String, String, String) {
    if let PriceChange::Cancel(id) = change
        && let Some(row) = history.rows().iter().find(|row| row.id == *id)
    {
        let set = format!("{} from {}", shown(&row.change), row.from);
        return (price_subject(&row.change), set, "cancelled".to_owned());
    }
    let before = shown_before(history, change, from);
    (price_subject(change), before, format!("from {from}"))
}

/// Returns the name of the prices that a change sets, for the audit log.
fn price_subject(change: &PriceChange) -> String {
    let of_prefix = |prefix| format!("prefix {prefix}");
    change.prefix().map_or_else(|| "base prices".to_owned(), of_prefix)
}

/// Describes the prices that would be in force at this time without the change.
fn shown_before(history: &PriceHistory, change: &PriceChange, from: Timestamp) -> String {
    let rows = history.rows().iter();
    let of_same = |row: &&PriceRow| row.from <= from && row.change.prefix() == change.prefix();
    let last = rows.rev().find(of_same);
    last.map_or_else(|| "none".to_owned(), |row| shown(&row.change))
}
