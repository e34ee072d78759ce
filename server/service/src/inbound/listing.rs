//! Lists of inbound messages.

use domain::records::{InboundNumberRecord, Paged};
use domain::{ApplicationId, InboundId, InboundRecord, KeyKind, Number, Reference, Timestamp};

use crate::Messages;
use crate::admission::KeyAccess;
use crate::applications::owned;
use crate::reports::{first_id, tests};
use store::error::{Refusal, Result};
use store::inbound::{self, Listed};
use store::inbound_numbers;
use store::query::Conn;

/// The maximum number of messages on a page.
const LIMIT_MAX: i64 = 1000;

/// Selects the inbound messages of a list.
#[derive(Clone, Debug, Default)]
pub struct InboundFilter {
    /// Only messages from this handset.
    pub number: Option<Number>,
    pub recipient: Option<Number>,
    /// Only messages whose text contains this, in any case. Empty for all messages.
    pub text: String,
    /// Only messages received at or after this time.
    pub from: Option<Timestamp>,
    /// Only messages received before this time.
    pub to: Option<Timestamp>,
    /// Only messages for this kind of key, for callers who may see both kinds.
    pub key: Option<KeyKind>,
    /// The maximum number of messages on the page, 1 to 1,000.
    pub limit: i64,
    /// The `next` of an earlier page.
    pub cursor: Option<String>,
}

impl InboundFilter {
    fn limit(&self) -> i64 {
        self.limit.clamp(1, LIMIT_MAX)
    }

    fn page(&self, mut items: Vec<InboundRecord>) -> Paged<InboundRecord> {
        items.sort_unstable_by_key(|message| std::cmp::Reverse(message.inboundid));
        Paged::of(items, self.limit(), |message| message.inboundid.to_string())
    }
}

impl Messages<'_> {
    /// Returns a page of the inbound messages that a key may see, newest first.
    ///
    /// # Errors
    /// `InvalidCursor`.
    pub async fn inbound(
        &self,
        access: &KeyAccess,
        filter: &InboundFilter,
    ) -> Result<Paged<InboundRecord>> {
        let mut conn = self.read_of(access.reference).await?;
        let test = access.kind == KeyKind::Test;
        let found = self.listed(&mut conn, (access.application_id, test), filter).await?;
        Ok(filter.page(found))
    }

    /// Returns a page of the inbound messages of one of an account's applications, newest first.
    ///
    /// # Errors
    /// `NoSuchApplication`, `InvalidCursor`.
    pub async fn account_inbound(
        &self,
        account_id: i64,
        reference: Reference,
        filter: &InboundFilter,
    ) -> Result<Paged<InboundRecord>> {
        let mut conn = self.read_of(reference).await?;
        let id = owned(&mut conn, account_id, reference).await?.id;
        let mut found = Vec::new();
        for test in tests(filter.key) {
            found.extend(self.listed(&mut conn, (id, test), filter).await?);
        }
        Ok(filter.page(found))
    }

    /// Returns the numbers of one of an account's applications.
    ///
    /// # Errors
    /// `NoSuchApplication`.
    pub async fn account_numbers(
        &self,
        account_id: i64,
        reference: Reference,
    ) -> Result<Vec<InboundNumberRecord>> {
        let mut conn = self.read_of(reference).await?;
        let id = owned(&mut conn, account_id, reference).await?.id;
        inbound_numbers::of_application(&mut conn, id).await
    }

    /// Returns the messages that the filter selects, and one more if there are more.
    async fn listed(
        &self,
        conn: Conn<'_>,
        (application_id, test): (ApplicationId, bool),
        filter: &InboundFilter,
    ) -> Result<Vec<InboundRecord>> {
        let mut below = filter.to.map_or(i64::MAX, first_id);
        if let Some(cursor) = &filter.cursor {
            below = below.min(InboundId::parse(cursor).ok_or(Refusal::InvalidCursor)?.0);
        }
        let country_code = &self.inner.router.country_code;
        let form = |number: &Option<Number>| {
            number.as_ref().map(|number| number.for_carrier(country_code)).unwrap_or_default()
        };
        let (number, recipient) = (form(&filter.number), form(&filter.recipient));
        let listed = Listed {
            application_id,
            test,
            from: filter.from.map_or(0, first_id),
            below,
            number: &number,
            recipient: &recipient,
            text: &filter.text,
        };
        inbound::list(conn, listed, filter.limit() + 1).await
    }
}
