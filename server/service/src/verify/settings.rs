//! What the owner of an application sets for its codes.

use domain::Reference;
use domain::verify::{Locale, WebOtpDomain};

use crate::Applications;
use crate::applications::owned;
use crate::transactions::work;
use store::applications::{self, CodeSettings};
use store::audit::{self, Actor, Change};
use store::error::{Refusal, Result};

impl Applications<'_> {
    /// Returns what the owner of an application has set for its codes.
    ///
    /// # Errors
    /// `NoSuchApplication`.
    pub async fn code_settings(&self, reference: Reference) -> Result<CodeSettings> {
        let mut conn = self.read_of(reference).await?;
        let found = applications::keys_and_code_settings(&mut conn, reference).await?;
        found.map(|(_, settings)| settings).ok_or_else(|| Refusal::NoSuchApplication.into())
    }

    /// Sets the language of an application's codes, and the website into which browsers may fill
    /// the codes. An empty domain stands for none.
    ///
    /// # Errors
    /// `NoSuchApplication`, `WebOtpDomainInvalid`.
    pub async fn set_code_settings(
        &self,
        account_id: i64,
        reference: Reference,
        locale: Locale,
        domain: &str,
    ) -> Result<()> {
        let domain = domain.trim();
        let domain = (!domain.is_empty()).then(|| WebOtpDomain::parse(domain)).transpose();
        let domain = domain.map_err(|_| Refusal::WebOtpDomainInvalid)?;
        let settings = CodeSettings { locale, domain };
        self.in_transaction_of(
            reference,
            work!(|tx, now| {
                let row = owned(tx, account_id, reference).await?;
                let before = applications::keys_and_code_settings(tx, reference).await?;
                let before = before.map(|(_, before)| written(&before)).unwrap_or_default();
                applications::set_code_settings(tx, row.id, &settings).await?;
                let (actor, subject) = (Actor::Account(account_id), reference.to_string());
                let after = written(&settings);
                let change = Change::of(before.as_str(), after.as_str());
                audit::insert_change(tx, now, &actor, "application.codes", &subject, change).await
            }),
        )
        .await
    }
}

fn written(settings: &CodeSettings) -> String {
    let domain = settings.domain.as_ref().map_or("no domain", WebOtpDomain::as_str);
    format!("{}, {domain}", settings.locale)
}
