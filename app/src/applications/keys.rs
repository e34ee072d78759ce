//! `/applications/{reference}/keys`: an application's keys. New keys are shown once. Each key can
//! be replaced after a confirmation.

use domain::records::{KeyClientRecord, KeyRecord};
use domain::{Category, KeyKind, Reference};
use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;

use super::NOT_FOR_SMS;
use super::application_view::{ApplicationView, LoadApplication, ReplacedKeyCalls};
use super::frame::ApplicationFrame;
use super::limits::PROPOSED_ADDRESSES;
use super::shown_once::{TakeKeys, shown_once};
use crate::account::PasswordField;
use crate::page_data::PageData;
use crate::problem::Problem;
use crate::reports::grouped;
use crate::ui::{
    DateTime, Fact, FormState, Loaded, PostForm, StepUpField, SubmitButton, Table, address,
    in_path, in_zone, parameter,
};
use crate::webhooks::{Endpoint, LoadWebhooks};
#[cfg(feature = "ssr")]
use {
    super::new_keys::NewKeys,
    crate::portal_request::{redirect_to, signed_in, step_up},
    crate::problem::Cause,
    domain::Refusal,
    service::{KeyAccess, Service, WebhookChange},
};

/// Replaces a key. The old key stops working at once, and all other devices are signed out.
/// `last_four` is the end of the key that the page showed, if known. A form that is sent twice or
/// from a stale page replaces nothing. Removes the endpoints of the key if `remove_endpoints` isn't
/// empty.
#[server(prefix = "/fn", endpoint = "replace-key")]
pub async fn replace_key(
    reference: Reference,
    kind: String,
    password: String,
    #[server(default)] credential: String,
    #[server(default)] last_four: String,
    #[server(default)] remove_endpoints: String,
) -> Result<(), Problem> {
    let (current, account) = signed_in().await?;
    // The form always requires the password. It confirms the user's identity if the account has no
    // second factor.
    if account.second_factor {
        step_up(&current, &account, &credential).await?;
    }
    let kind = KeyKind::parse(&kind).ok_or(Cause::Unreadable)?;
    let token = current.token().unwrap_or_default();
    let last_four = Some(last_four.as_str()).filter(|last_four| !last_four.is_empty());
    let key = current
        .service()
        .applications()
        .replace_key(account.id, reference, kind, &password, &token, last_four)
        .await?;
    let kept = current.keep_keys(reference, &NewKeys::of(&[key])).await;
    kept.map_err(Problem::after_change)?;
    if !remove_endpoints.is_empty() {
        let access = current.service().webhooks().access_of(account.id, reference, kind).await?;
        let removed = remove_all(current.service(), &access).await;
        removed.map_err(|error| Problem::from(error).after_change())?;
    }
    // Redirect to the page without the confirmation, which shows the new key.
    redirect_to(&format!("/applications/{reference}/keys"))
}

#[cfg(feature = "ssr")]
async fn remove_all(service: &Service, access: &KeyAccess) -> service::Result<()> {
    for endpoint in service.webhooks().endpoints(access).await? {
        let change = WebhookChange::Remove(endpoint.webhookid);
        match service.webhooks().change(access, change, None).await {
            Err(error) if error.refusal() == Some(&Refusal::NoSuchWebhook) => {}
            removed => drop(removed?),
        }
    }
    Ok(())
}

/// Loads the clients that used a key of one of the account's applications.
#[server(prefix = "/fn", endpoint = "key-clients", input = GetUrl)]
pub async fn load_key_clients(
    reference: Reference,
    kind: String,
) -> Result<Vec<KeyClientRecord>, Problem> {
    let (current, account) = signed_in().await?;
    let kind = KeyKind::parse(&kind).ok_or(Cause::Unreadable)?;
    Ok(current.service().applications().key_clients(account.id, reference, kind).await?)
}

#[component]
pub fn KeysPage() -> impl IntoView {
    let reference = in_path("reference");
    let replace = parameter("replace");
    let replaced = Memo::new(move |_| replace.read().as_deref().and_then(KeyKind::parse));
    let form = FormState::new::<ReplaceKey>("keys-alert");
    let data = PageData::after([form], move || LoadApplication { reference: reference.get() });
    let keys = PageData::after([form], move || TakeKeys { reference: reference.get() });
    let render = move |data: ApplicationView| {
        let (reference, category) = (data.application.reference, data.application.category);
        let known = |kind| KnownKey {
            record: data.keys.iter().find(|key| key.kind == kind).cloned(),
            replaced: data.replaced_calls.iter().find(|calls| calls.kind == kind).cloned(),
        };
        let (live, test) = (known(KeyKind::Live), known(KeyKind::Test));
        view! {
            <ApplicationFrame application=data.application at="Keys">
                {shown_once(keys)}
                <h2>"Keys"</h2>
                <Key reference category kind=KeyKind::Live known=live replaced form/>
                <Key reference category kind=KeyKind::Test known=test replaced form/>
            </ApplicationFrame>
        }
    };
    view! { <Loaded data render/> }
}

/// A key as its page shows it.
struct KnownKey {
    record: Option<KeyRecord>,
    /// Recent calls with a replaced key of this kind.
    replaced: Option<ReplacedKeyCalls>,
}

/// Links to the list of recent API calls.
fn last_calls(reference: Reference) -> impl IntoView {
    let href = format!("/applications/{reference}/start#calls");
    view! { <a href=href>"Last API calls"</a> }
}

/// One of the two keys: its purpose, and the form to replace it.
#[component]
fn Key(
    reference: Reference,
    category: Category,
    kind: KeyKind,
    known: KnownKey,
    /// The kind of key whose replacement is to be confirmed.
    replaced: Memo<Option<KeyKind>>,
    form: FormState,
) -> impl IntoView {
    let (name, purpose, open_label) = match kind {
        KeyKind::Live => (
            "API key",
            "Sends real messages, which are paid from the balance.",
            "Replace the API key",
        ),
        KeyKind::Test => (
            "Test key",
            "Sends to nobody and costs nothing. It has its own test balance, which is filled up \
             every day.",
            "Replace the test key",
        ),
    };
    let purpose = match category {
        Category::Sms => purpose,
        Category::Electricity => NOT_FOR_SMS,
    };
    let open = format!("/applications/{reference}/keys?replace={kind}");
    let (calls, last_four) = match &known.record {
        Some(key) => (key.calls, key.last_four.clone()),
        None => (0, String::new()),
    };
    let is_used = known.record.as_ref().is_some_and(|key| key.used_at.is_some());
    let choice = move || {
        if replaced.get() == Some(kind) {
            view! { <Confirmation reference kind calls last_four=last_four.clone() form/> }
                .into_any()
        } else {
            view! { <p><a class="button" href=open.clone()>{open_label}</a></p> }.into_any()
        }
    };
    view! {
        <section class="panel">
            <h3>{name}</h3>
            <p>{purpose}</p>
            {facts(reference, known.record)}
            {known.replaced.map(|calls| replaced_calls(reference, calls))}
            {is_used.then(|| clients(reference, category, kind))}
            {choice}
        </section>
    }
}

/// Warns that systems still use a replaced key.
fn replaced_calls(reference: Reference, calls: ReplacedKeyCalls) -> impl IntoView {
    let ReplacedKeyCalls { kind, count, at, from } = calls;
    let key = match kind {
        KeyKind::Live => "an API key that was replaced",
        KeyKind::Test => "a test key that was replaced",
    };
    let refused = match count {
        1 => format!("1 of the last API calls had {key} and was refused, at "),
        count => format!("{count} of the last API calls had {key} and were refused, the last at "),
    };
    let from = from.map(|from| format!(" from {from}"));
    view! {
        <div class="notice">
            <p>
                {refused} <DateTime at with_zone=true/> {from}
                ". Give your systems the new key. If the calls aren't yours, you don't need to do \
                 anything: that key no longer works. "
                {last_calls(reference)}
            </p>
        </div>
    }
}

/// Shows how a key ends, and when it was made and used.
fn facts(reference: Reference, known: Option<KeyRecord>) -> impl IntoView {
    let unknown = || "unknown".into_any();
    let (last_four, made, used) = match known {
        None => (unknown(), unknown(), unknown()),
        Some(key) => {
            let from = key.used_from.map(|from| format!(" from {from}"));
            let used = match key.used_at {
                Some(at) => view! { <DateTime at/> {from} ". " {last_calls(reference)} }.into_any(),
                None => "not yet".into_any(),
            };
            let made = view! { <DateTime at=key.made_at/> };
            (key.last_four.into_any(), made.into_any(), used)
        }
    };
    view! {
        <dl class="facts">
            <Fact term="Ends in" class="key">{last_four}</Fact>
            <Fact term=in_zone("Created (UTC)") class="figures">{made}</Fact>
            <Fact term=in_zone("Last used (UTC)") class="figures">{used}</Fact>
        </dl>
    }
}

/// Lists the addresses that used a key.
fn clients(reference: Reference, category: Category, kind: KeyKind) -> impl IntoView {
    let data = PageData::new(move || LoadKeyClients { reference, kind: kind.to_string() });
    let shown = move || {
        Suspend::new(async move {
            let clients = data.get().await.ok();
            let allowing = (category == Category::Sms).then_some(reference);
            clients.map(|clients| listed_clients(allowing, kind, &clients))
        })
    };
    view! { <Transition>{shown}</Transition> }
}

fn listed_clients(
    allowing: Option<Reference>,
    kind: KeyKind,
    clients: &[KeyClientRecord],
) -> impl IntoView + use<> {
    let label = match kind {
        KeyKind::Live => "Addresses that used the API key",
        KeyKind::Test => "Addresses that used the test key",
    };
    let table = Table::wide(clients)
        .styled("key", "Address", |one| one.client.clone().unwrap_or_else(|| "others".to_owned()))
        .amount("Calls", |one| grouped(one.calls))
        .time(in_zone("First (UTC)"), |one| one.first_at)
        .time(in_zone("Last (UTC)"), |one| one.last_at)
        .in_region_or(label, "No address has used this key in the last 30 days.");
    view! {
        <h4>"Addresses that used this key in the last 30 days"</h4>
        {table}
        {allowing.and_then(|reference| allow_only(reference, clients))}
    }
}

/// Links to the settings with these addresses filled in. Shows nothing if not all addresses are
/// known, because the limit would shut out the others.
fn allow_only(reference: Reference, clients: &[KeyClientRecord]) -> Option<AnyView> {
    let known: Option<Vec<&str>> = clients.iter().map(|one| one.client.as_deref()).collect();
    let mut known = known.filter(|known| !known.is_empty())?;
    known.sort_unstable();
    known.dedup();
    let path = format!("/applications/{reference}/settings");
    let href = address(&path, [(PROPOSED_ADDRESSES, known.join(",").as_str())]) + "#limits";
    Some(view! { <p><a href=href>"Allow only these addresses"</a></p> }.into_any())
}

/// Lists the key's endpoints, if there are any, with a box to remove them too.
fn endpoints(reference: Reference, kind: KeyKind) -> impl IntoView {
    let data = PageData::new(move || LoadWebhooks { reference: reference.to_string() });
    let shown = move || {
        Suspend::new(async move {
            let found = data.get().await.map(|found| found.endpoints).unwrap_or_default();
            let found: Vec<_> =
                found.into_iter().filter(|endpoint| endpoint.kind == kind).collect();
            (!found.is_empty()).then(|| view! { <EndpointsBox endpoints=found/> })
        })
    };
    view! { <Transition>{shown}</Transition> }
}

#[component]
fn EndpointsBox(endpoints: Vec<Endpoint>) -> impl IntoView {
    let label = match endpoints.len() {
        1 => "Also remove the endpoint".to_owned(),
        count => format!("Also remove the {count} endpoints"),
    };
    let listed = endpoints.into_iter().map(|Endpoint { record, .. }| {
        view! {
            <li>
                <span class="key">{record.url}</span>
                ", created "
                <DateTime at=record.created_at with_zone=true/>
            </li>
        }
    });
    view! {
        <p>
            "These endpoints keep getting the events of this key. If someone else had the key, \
             check that each endpoint is yours: an endpoint of a thief would outlive the old key."
        </p>
        <ul>{listed.collect_view()}</ul>
        <label class="choice">
            <input type="checkbox" name="remove_endpoints" value="on"/>
            {label}
        </label>
    }
}

/// The confirmation of a replacement, with the account's password.
#[component]
fn Confirmation(
    reference: Reference,
    kind: KeyKind,
    /// The number of calls with the key in the last 24 hours.
    calls: i64,
    /// The key's last four characters. Empty if unknown.
    last_four: String,
    form: FormState,
) -> impl IntoView {
    let label = match kind {
        KeyKind::Live => "Replace key",
        KeyKind::Test => "Replace test key",
    };
    let used = match calls {
        0 => "No call in the last 24 hours used this key.".to_owned(),
        1 => "1 call in the last 24 hours used this key.".to_owned(),
        calls => format!("{calls} calls in the last 24 hours used this key."),
    };
    view! {
        <PostForm form>
            <p>
                "The old key stops working immediately: your systems send nothing until they have \
                 the new one. Every other browser that is signed in to your account is signed out. "
                {used}
                " Enter your account's password to go on."
            </p>
            <input type="hidden" name="reference" value=reference.to_string()/>
            <input type="hidden" name="kind" value=kind.as_str()/>
            <input type="hidden" name="last_four" value=last_four/>
            {endpoints(reference, kind)}
            <PasswordField form/>
            <StepUpField form/>
            <div class="buttons">
                <SubmitButton label form danger=true/>
                <a class="button button-quiet" href=format!("/applications/{reference}/keys")>
                    "Cancel"
                </a>
            </div>
        </PostForm>
    }
}
