//! `[[carrier]]` and `[[route]]` of the settings file.

mod address;
mod fields;
mod http;
mod rewriting;
mod route;
mod smpp;
mod submit_status;
mod template;
mod tlvs;

use std::time::Duration;

use domain::{Rewriting, Route, Routes};
use service::NamedStates;

pub use super::secret::Secret;
use fields::{Fields, Findings};
pub use http::{
    AnswerRule, Body, HttpSettings, InboundSettings, Meaning, MessageId, Pointer, ReceiptSettings,
};
pub use smpp::{AddressType, BindMode, ReceiptState, SmppSettings};
pub use submit_status::{SubmitAction, SubmitStatus};

use super::file::Item;
use super::layers::{Source, Tables};
use crate::config_error::ConfigError;
pub use template::{Escape, Placeholder};
pub use tlvs::TlvFacts;

/// The maximum length of a carrier's name.
const NAME_CHARS_MAX: usize = 32;
/// The highest `degraded_silent_seconds`: a week.
const SILENT_LIMIT_S: u64 = 7 * 24 * 3600;
/// The highest `degraded_unanswered_seconds`: the longest `answer_timeout`.
const UNANSWERED_LIMIT_S: u64 = 300;
/// The sandbox's name. A carrier of another kind with this name would be mistaken for the sandbox.
const SANDBOX: &str = service::SANDBOX_CARRIER;

/// The carriers, and the routes that distribute messages among them.
#[derive(Clone, Debug, Default)]
pub struct Carriers {
    /// In the order of the file. If the list is empty, the sandbox is the only carrier.
    pub list: Vec<CarrierSettings>,
    /// Empty only if the list is empty.
    pub routes: Routes,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CarrierSettings {
    /// Unique. Routes and messages refer to the carrier by this name.
    pub name: String,
    pub health: HealthSettings,
    /// How the carrier gets numbers and senders.
    pub rewriting: Rewriting,
    /// The most segments of a message that the carrier accepts.
    pub segments_max: Option<usize>,
    pub kind: CarrierKind,
}

/// When a carrier counts as degraded, so that messages take another route. 0 turns a check off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HealthSettings {
    /// The highest normal share of refused messages.
    pub refused_percent: u32,
    /// The highest normal share of receipts that report no delivery.
    pub undelivered_percent: u32,
    /// How long a carrier that accepted messages may send no receipt.
    pub silent_seconds: u64,
    /// How long a carrier may answer nothing while messages wait for an answer.
    pub unanswered_seconds: u64,
}

impl HealthSettings {
    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let refused = fields.within("degraded_refused_percent", "50", &(0..=100));
        let undelivered = fields.within("degraded_undelivered_percent", "90", &(0..=100));
        let silent = fields.within("degraded_silent_seconds", "3600", &(0..=SILENT_LIMIT_S));
        let unanswered =
            fields.within("degraded_unanswered_seconds", "5", &(0..=UNANSWERED_LIMIT_S));
        Some(Self {
            refused_percent: refused?,
            undelivered_percent: undelivered?,
            silent_seconds: silent?,
            unanswered_seconds: unanswered?,
        })
    }

    /// Returns how long a carrier may answer nothing. `None` means without limit.
    pub fn unanswered_max(&self) -> Option<Duration> {
        (self.unanswered_seconds > 0).then(|| Duration::from_secs(self.unanswered_seconds))
    }
}

impl CarrierSettings {
    /// Returns whether the carrier never gets messages.
    pub fn only_receives(&self) -> bool {
        matches!(&self.kind, CarrierKind::Smpp(smpp) if smpp.bind == BindMode::Receiver)
    }

    /// Returns the states in receipts that the settings name.
    pub fn named_states(&self) -> NamedStates {
        match &self.kind {
            CarrierKind::Smpp(smpp) => smpp.named_states(),
            CarrierKind::Http(http) => {
                http.receipt.as_ref().map(ReceiptSettings::named_states).unwrap_or_default()
            }
            CarrierKind::Sandbox => NamedStates::default(),
        }
    }

    /// Returns whether the carrier gets whole messages and splits them itself.
    pub fn takes_whole(&self) -> bool {
        match &self.kind {
            CarrierKind::Smpp(smpp) => smpp.segmentation == domain::Segmentation::Payload,
            CarrierKind::Http(_) | CarrierKind::Sandbox => true,
        }
    }
}

/// The protocol of a carrier, with its settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CarrierKind {
    Smpp(Box<SmppSettings>),
    Http(Box<HttpSettings>),
    /// Delivers to nobody.
    Sandbox,
}

/// The settings in force, each with its value (secrets masked) and its source.
pub type Shown = Vec<(String, String, Source)>;

/// Reads all tables. Carriers reach this server at `base_url`.
///
/// # Errors
/// Lists every problem of all tables.
pub fn read(tables: Tables, base_url: Option<&str>) -> Result<(Carriers, Shown), ConfigError> {
    let mut findings = Findings::default();
    let mut names: Vec<String> = Vec::new();
    let mut list = Vec::new();
    for (number, (line, table)) in (1..).zip(tables.carriers) {
        let name = table.get("name").and_then(Item::text);
        let shown = name.unwrap_or_else(|| number.to_string());
        let fields = Fields::new(
            format!("[[carrier]] {shown}"),
            format!("carrier.{shown}"),
            (line, table),
            &mut findings,
        );
        list.extend(carrier(fields, &mut names, base_url));
    }
    let mut orders = route::Orders::default();
    let routes: Vec<Route> = (1..)
        .zip(tables.routes)
        .filter_map(|(number, table): (usize, _)| {
            let fields = Fields::new(
                format!("[[route]] {number}"),
                format!("route.{number}"),
                table,
                &mut findings,
            );
            route::read(fields, &list, &names, &mut orders)
        })
        .collect();
    if findings.problems.is_empty() {
        let routes = complete(&list, routes)?;
        let routes = Routes::new(routes);
        return Ok((Carriers { list, routes }, findings.shown));
    }
    let problems = findings.problems.join("\n  ");
    Err(ConfigError::new(format!("{}:\n  {problems}", tables.file)))
}

/// Reads a carrier, and adds its name to the known names.
fn carrier(
    mut fields: Fields<'_>,
    names: &mut Vec<String>,
    base_url: Option<&str>,
) -> Option<CarrierSettings> {
    let wanted = format!("1 to {NAME_CHARS_MAX} lower-case letters, digits, - and _");
    let name = fields.parsed("name", None, &wanted, name);
    if let Some(name) = &name {
        if names.contains(name) {
            fields.problem("a carrier of this name is already set above");
        }
        names.push(name.clone());
    }
    let kinds = ["smpp", "http", SANDBOX].map(|kind| (kind, kind));
    let kind = fields.choice("kind", None, &kinds);
    if kind.is_some_and(|kind| kind != SANDBOX) && name.as_deref() == Some(SANDBOX) {
        fields.problem("only a carrier of the kind sandbox may be called sandbox");
    }
    let health = match kind {
        // A sandbox's failures are part of tests.
        Some(SANDBOX) | None => Some(HealthSettings::default()),
        Some(_) => HealthSettings::read(&mut fields),
    };
    let rewriting = rewriting::read(&mut fields);
    let segments_max = fields.optional("segments_max", "a whole number from 1", |text| {
        text.parse().ok().filter(|max| *max > 0)
    });
    let kind = match kind {
        Some("smpp") => SmppSettings::read(&mut fields).map(Box::new).map(CarrierKind::Smpp),
        Some("http") => {
            let own_url = base_url.zip(name.as_ref());
            let own_url = own_url.map(|(base_url, name)| format!("{base_url}/carriers/{name}"));
            HttpSettings::read(&mut fields, own_url).map(Box::new).map(CarrierKind::Http)
        }
        Some(_) => Some(CarrierKind::Sandbox),
        // The valid keys depend on the kind, so the other keys can't be checked.
        None => return None,
    };
    fields.finish();
    let mut health = health?;
    let gets_receipts = match &kind {
        Some(CarrierKind::Http(http)) => http.receipt.is_some(),
        Some(CarrierKind::Smpp(smpp)) => smpp.bind != BindMode::Transmitter,
        Some(CarrierKind::Sandbox) | None => true,
    };
    if !gets_receipts {
        health.silent_seconds = 0;
    }
    Some(CarrierSettings { name: name?, health, rewriting, segments_max, kind: kind? })
}

fn name(text: &str) -> Option<String> {
    let fits = (1..=NAME_CHARS_MAX).contains(&text.len())
        && (text.bytes()).all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_'));
    fits.then(|| text.to_owned())
}

/// Adds a route if there is only one carrier and no route. With several carriers, the settings must
/// contain routes.
fn complete(list: &[CarrierSettings], routes: Vec<Route>) -> Result<Vec<Route>, ConfigError> {
    match list {
        [only] if routes.is_empty() && only.only_receives() => Err(ConfigError::new(
            "the only carrier has bind = \"receiver\", so no message would be sent: add a \
             [[carrier]] that sends",
        )),
        [only] if routes.is_empty() => {
            Ok(vec![Route { segments_max: only.segments_max, ..Route::to(only.name.clone()) }])
        }
        [_, _, ..] if routes.is_empty() => Err(ConfigError::new(
            "there are several carriers and no route, so no message would be sent: add a [[route]]",
        )),
        _ => Ok(routes),
    }
}

#[cfg(test)]
mod tests;
