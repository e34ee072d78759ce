//! `[[carrier]]` and `[[route]]` of the settings file.

mod address;
mod fields;
mod http;
mod route;
mod smpp;
mod template;

use std::num::NonZeroU32;

use domain::{Route, Routes};

pub use super::secret::Secret;
use fields::{Fields, Findings};
pub use http::{
    AnswerRule, Body, HttpSettings, InboundSettings, Meaning, Pointer, ReceiptSettings,
};
pub use smpp::{AddressType, BindMode, ReceiptState, SmppSettings};

use super::file::Item;
use super::layers::{Source, Tables};
use crate::config_error::ConfigError;
pub use template::{Escape, Placeholder};

/// The maximum length of a carrier's name.
const NAME_CHARS_MAX: usize = 32;
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

/// The settings of one carrier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CarrierSettings {
    /// Unique. Routes and messages refer to the carrier by this name.
    pub name: String,
    pub kind: CarrierKind,
}

impl CarrierSettings {
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
    Smpp(SmppSettings),
    Http(Box<HttpSettings>),
    /// Delivers to nobody.
    Sandbox,
}

/// The settings in force, each with its value (secrets masked) and its source.
pub type Shown = Vec<(String, String, Source)>;

/// Reads all tables.
///
/// # Errors
/// Lists every problem of all tables.
pub fn read(tables: Tables) -> Result<(Carriers, Shown), ConfigError> {
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
        list.extend(carrier(fields, &mut names));
    }
    let routes: Vec<Route> = (1..)
        .zip(tables.routes)
        .filter_map(|(number, table): (usize, _)| {
            let fields = Fields::new(
                format!("[[route]] {number}"),
                format!("route.{number}"),
                table,
                &mut findings,
            );
            route::read(fields, &names)
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
fn carrier(mut fields: Fields<'_>, names: &mut Vec<String>) -> Option<CarrierSettings> {
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
    let kind = match kind {
        Some("smpp") => SmppSettings::read(&mut fields).map(CarrierKind::Smpp),
        Some("http") => HttpSettings::read(&mut fields).map(Box::new).map(CarrierKind::Http),
        Some(_) => Some(CarrierKind::Sandbox),
        // The valid keys depend on the kind, so the other keys can't be checked.
        None => return None,
    };
    fields.finish();
    Some(CarrierSettings { name: name?, kind: kind? })
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
        [only] if routes.is_empty() => Ok(vec![Route {
            carrier: only.name.clone(),
            priority: 0,
            weight: NonZeroU32::MIN,
            kind: None,
            prefix: None,
            application: None,
            sender: None,
            cost: None,
        }]),
        [_, _, ..] if routes.is_empty() => Err(ConfigError::new(
            "there are several carriers and no route, so no message would be sent: add a [[route]]",
        )),
        _ => Ok(routes),
    }
}

#[cfg(test)]
mod tests;
