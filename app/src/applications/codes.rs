//! `/applications/{reference}/verify`: what happened to one-time codes, and their settings.

use domain::message::{pages, segments};
use domain::records::ApplicationRecord;
use domain::verify::{Locale, WebOtpDomain, longest_text};
use domain::{Money, Reference, Timestamp};
use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;
use serde::{Deserialize, Serialize};

use super::frame::ApplicationFrame;
use crate::page_data::PageData;
use crate::problem::Problem;
use crate::reports::counted;
use crate::ui::{
    AcceptedNotice, Choice, Field, FormState, Loaded, PostForm, SubmitButton, Table, in_path,
};
#[cfg(feature = "ssr")]
use {
    super::application_view::owned,
    crate::portal_request::{redirect_to, signed_in},
    crate::problem::Cause,
    domain::{KeyKind, Refusal},
    service::VerifyFigures,
};

/// The days that the figures cover. Verifications are kept as long.
#[cfg(feature = "ssr")]
const DAYS: i64 = 30;

const WEBSITE_HINT: &str = "For example shop.example.com. Browsers on phones can then fill in the \
                            code on this website.";

/// An application's verifications by day and country, and its settings for codes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CodesView {
    application: ApplicationRecord,
    currency: String,
    /// The tag of the language.
    locale: String,
    /// Empty for none.
    domain: String,
    live: Vec<DayOfCodes>,
    test: Vec<DayOfCodes>,
}

/// Counts of the verifications of a country that were started on a day.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct DayOfCodes {
    /// The start of the day (UTC).
    day: Timestamp,
    /// The country code. Empty if no country has it.
    country: String,
    starts: i64,
    messages: i64,
    delivered: i64,
    verified: i64,
    cost: Money,
}

impl DayOfCodes {
    /// Returns the cost divided by the number of verified numbers. `None` if there are none.
    fn per_verified(&self) -> Option<Money> {
        self.cost.micros().checked_div(self.verified).map(Money::from_micros)
    }
}

#[cfg(feature = "ssr")]
impl From<VerifyFigures> for DayOfCodes {
    fn from(figures: VerifyFigures) -> Self {
        let VerifyFigures { country, day, starts, messages, delivered, verified, cost } = figures;
        let day = Timestamp::from_unix_ms(day.saturating_mul(24 * 60 * 60 * 1000));
        Self { day, country, starts, messages, delivered, verified, cost }
    }
}

/// Loads the verifications of one of the account's applications.
#[server(prefix = "/fn", endpoint = "codes", input = GetUrl)]
pub async fn load_codes(reference: String) -> Result<CodesView, Problem> {
    let (current, account) = signed_in().await?;
    let service = current.service();
    let application = owned(service, account.id, &reference).await?;
    let settings = service.applications().code_settings(application.reference).await?;
    let from_day = service.clock().now().day() - DAYS;
    let mut figures = [Vec::new(), Vec::new()];
    for (kind, figures) in [KeyKind::Live, KeyKind::Test].into_iter().zip(&mut figures) {
        let access = service.webhooks().access_of(account.id, application.reference, kind).await?;
        let found = service.messages().verify_figures(&access, from_day).await?;
        *figures = found.into_iter().map(DayOfCodes::from).collect();
    }
    let [live, test] = figures;
    Ok(CodesView {
        application,
        currency: current.site().currency.clone(),
        locale: settings.locale.as_str().to_owned(),
        domain: settings.domain.as_ref().map_or("", WebOtpDomain::as_str).to_owned(),
        live,
        test,
    })
}

/// Saves the language of codes and the website that browsers may hand them to.
#[server(prefix = "/fn", endpoint = "set-codes")]
pub async fn set_codes(
    reference: Reference,
    #[server(default)] locale: String,
    #[server(default)] domain: String,
) -> Result<(), Problem> {
    let keep = |problem: Problem| problem.typed("locale", &locale).typed("domain", &domain);
    let (current, account) = signed_in().await.map_err(keep)?;
    let language = Locale::of_tag(&locale);
    let language = language.ok_or_else(|| keep(Cause::Unreadable.into()))?;
    let applications = current.service().applications();
    let saved = applications.set_code_settings(account.id, reference, language, &domain).await;
    saved.map_err(|error| match error.refusal() {
        Some(Refusal::WebOtpDomainInvalid) => keep(error.into()),
        _ => error.into(),
    })?;
    redirect_to(&format!("/applications/{reference}/verify?codes=1"))
}

#[component]
pub fn CodesPage() -> impl IntoView {
    let reference = in_path("reference");
    let form = FormState::new::<SetCodes>("codes-alert");
    let data = PageData::after([form], move || LoadCodes { reference: reference.get() });
    view! { <Loaded data render=move |data| view! { <Codes data form/> }/> }
}

#[component]
fn Codes(data: CodesView, form: FormState) -> impl IntoView {
    let CodesView { application, currency, locale, domain, live, test } = data;
    let reference = application.reference.to_string();
    let options = Locale::ALL
        .into_iter()
        .map(|locale| (locale.as_str().to_owned(), locale.name().to_owned()))
        .collect();
    let chosen = form.typed("locale").unwrap_or(locale);
    let typed = form.typed("domain").unwrap_or(domain);
    let hint = format!("{WEBSITE_HINT}{}", long_codes(&typed).unwrap_or_default());
    view! {
        <ApplicationFrame application at="One-time codes">
            <AcceptedNotice parameter="codes" sentence="The settings of codes are saved."/>
            <section>
                <h2>"Verifications of the last 30 days"</h2>
                <p>
                    "Your system starts a verification and checks the typed code through the API. \
                     See " <a href="/docs#verify" rel="external">"the API reference"</a> "."
                </p>
                {totals(&live, &currency)}
                {table(&live, &currency, "Verifications", "No verifications yet.")}
            </section>
            {(!test.is_empty())
                .then(|| view! {
                    <section>
                        <h2>"Verifications with the test key"</h2>
                        {table(&test, &currency, "Test verifications", "")}
                    </section>
                })}
            <section>
                <h2>"Settings"</h2>
                <PostForm form>
                    <input type="hidden" name="reference" value=reference/>
                    <Choice label="Language, unless the call names one" name="locale" options chosen/>
                    <Field
                        label="Website (optional)"
                        name="domain"
                        value=typed
                        hint
                        form
                    />
                    <SubmitButton label="Save" form/>
                </PostForm>
            </section>
        </ApplicationFrame>
    }
}

/// Warns of a website with which codes can take more than one segment. Codes in different languages
/// do so with websites of different lengths.
fn long_codes(domain: &str) -> Option<String> {
    let domain = WebOtpDomain::parse(domain).ok()?;
    let count = |count: usize, noun| counted(i64::try_from(count).unwrap_or(i64::MAX), noun);
    let long = Locale::ALL.into_iter().filter_map(|locale| {
        let text = longest_text(locale, &domain);
        let parts = [count(segments(&text), "segment"), count(pages(&text), "page")].join(", ");
        (segments(&text) > 1).then(|| format!("{} ({parts})", locale.name()))
    });
    let long = long.collect::<Vec<_>>().join(", ");
    let sentence = format!(
        " With this website, long codes and names need more than one segment in {long}. You pay for \
         each page.",
    );
    (!long.is_empty()).then_some(sentence)
}

/// Says how many verifications ended well, and what one of these cost.
fn totals(days: &[DayOfCodes], currency: &str) -> Option<impl IntoView + use<>> {
    let sum = |of: fn(&DayOfCodes) -> i64| days.iter().map(of).sum::<i64>();
    let (starts, verified) = (sum(|day| day.starts), sum(|day| day.verified));
    let cost = sum(|day| day.cost.micros());
    let share = (verified * 100).checked_div(starts)?;
    let each = cost.checked_div(verified).map(Money::from_micros);
    let each = each.map(|each| format!(" A verified number cost {each} {currency} on average."));
    let each = each.unwrap_or_default();
    let counts = format!("{verified} of {starts} numbers were verified ({share} %).{each}");
    Some(view! { <p>{counts}</p> })
}

fn table(days: &[DayOfCodes], currency: &str, label: &'static str, none: &'static str) -> AnyView {
    Table::wide(days)
        .column("Day (UTC)", |day| day.day.to_string().chars().take(10).collect::<String>())
        .column("Country", |day| match day.country.as_str() {
            "" => "unknown".to_owned(),
            code => format!("+{code}"),
        })
        .amount("Started", |day| day.starts)
        .amount("Messages", |day| day.messages)
        .amount("Delivered", |day| day.delivered)
        .amount("Verified", |day| day.verified)
        .money("Cost", currency, |day| day.cost.shown())
        .money("Cost per verified number", currency, |day| {
            day.per_verified().map_or_else(|| "–".to_owned(), Money::shown)
        })
        .in_region_or(label, none)
}
