//! Passkeys: the part of `/account/two-factor` that adds and removes them.

use domain::Refusal;
use domain::passkey::PASSKEYS_MAX;
use domain::records::PasskeyRecord;
use leptos::prelude::*;
use serde::{Deserialize, Serialize};

use crate::problem::Problem;
use crate::ui::{
    BUTTONS, DateTime, Field, FormAlert, FormState, PostForm, StepUpField, SubmitButton, Table,
    in_zone, passkeys_run,
};
#[cfg(feature = "hydrate")]
use crate::{client::call, problem::Cause, ui::make_passkey};
#[cfg(feature = "ssr")]
use {
    crate::portal_request::{signed_in, step_up},
    service::Service,
};

/// The passkey data of the page.
#[derive(Clone, Serialize, Deserialize)]
pub struct Passkeys {
    /// Whether browsers can create passkeys for this site.
    work: bool,
    added: Vec<PasskeyRecord>,
}

/// Loads the passkeys of an account.
#[cfg(feature = "ssr")]
pub async fn passkeys_of(service: &Service, account_id: i64) -> Result<Passkeys, Problem> {
    Ok(Passkeys {
        work: service.accounts().passkeys_work(),
        added: service.accounts().passkeys(account_id).await?,
    })
}

/// Starts adding a passkey with this name. The browser then gets the options from
/// [`passkey_to_add`] and sends the new credential to [`add_passkey`].
#[server(prefix = "/fn", endpoint = "begin-passkey")]
pub async fn begin_passkey(
    name: String,
    #[server(default)] credential: String,
) -> Result<(), Problem> {
    let (current, account) = signed_in().await?;
    step_up(&current, &account, &credential).await?;
    let token = current.token().unwrap_or_default();
    let service = current.service();
    let accounts = service.accounts();
    let begun = accounts.begin_passkey(&token, account.id, &account.email, &name);
    Ok(begun.await?)
}

/// Returns the browser's options for creating the passkey that is being added, as JSON.
#[server(prefix = "/fn", endpoint = "passkey-to-add")]
pub async fn passkey_to_add() -> Result<String, Problem> {
    let (current, account) = signed_in().await?;
    let token = current.token().unwrap_or_default();
    Ok(current.service().accounts().passkey_to_add(&token, account.id).await?)
}

/// Adds the passkey that the browser created. `answer` is the credential as JSON.
#[server(prefix = "/fn", endpoint = "add-passkey")]
pub async fn add_passkey(answer: String) -> Result<(), Problem> {
    let (current, account) = signed_in().await?;
    let token = current.token().unwrap_or_default();
    let accounts = current.service().accounts();
    let added = accounts.add_passkey(&token, account.id, &answer);
    Ok(added.await?)
}

#[server(prefix = "/fn", endpoint = "remove-passkey")]
pub async fn remove_passkey(
    passkey: i64,
    #[server(default)] credential: String,
) -> Result<(), Problem> {
    let (current, account) = signed_in().await?;
    let stepped_up = step_up(&current, &account, &credential).await;
    // The page has one such form per passkey. Only the submitted form shows the step-up field.
    stepped_up.map_err(|problem| problem.typed("passkey", &passkey.to_string()))?;
    let accounts = current.service().accounts();
    let removed = accounts.remove_passkey(account.id, passkey);
    Ok(removed.await?)
}

#[derive(Clone, Copy)]
pub struct PasskeyForms {
    begin: FormState,
    remove: FormState,
    /// The number of passkeys added while the page was open.
    added: RwSignal<usize>,
}

impl PasskeyForms {
    pub fn new() -> Self {
        let begin = FormState::new::<BeginPasskey>("passkey-alert");
        let added = RwSignal::new(0);
        Effect::new(move || {
            if begin.accepted.get() > 0 {
                add(begin, added);
            }
        });
        Self { begin, remove: FormState::new::<RemovePasskey>("remove-passkey-alert"), added }
    }

    /// Reruns the current computation when one of the forms changed something.
    pub fn track(&self) {
        self.remove.accepted.track();
        self.added.track();
    }
}

#[cfg(not(feature = "hydrate"))]
fn add(_begin: FormState, _added: RwSignal<usize>) {}

/// Makes the browser create the passkey that is being added.
#[cfg(feature = "hydrate")]
fn add(begin: FormState, added: RwSignal<usize>) {
    begin.pending.set(true);
    leptos::task::spawn_local(async move {
        let made = async {
            let options = call(PasskeyToAdd {}).await?;
            let answer = make_passkey(&options).await;
            let answer = answer.ok_or(Cause::NoPasskeyMade)?;
            call(AddPasskey { answer }).await
        };
        let made = made.await;
        begin.pending.try_set(false);
        match made {
            Ok(()) => {
                added.try_update(|added| *added += 1);
            }
            Err(problem) => {
                begin.problem.try_set(Some(problem));
            }
        }
    });
}

/// The account's passkeys and their forms. Without scripts, passkeys can only be removed.
#[component]
pub fn PasskeyList(passkeys: Passkeys, forms: PasskeyForms) -> impl IntoView {
    let Passkeys { work, added } = passkeys;
    let run = passkeys_run();
    let count = added.len();
    let list = (count > 0).then(|| listed(&added, forms.remove));
    let addition = move || match (work, count) {
        (false, _) => view! { <p>{Refusal::PasskeysUnavailable.to_string()}</p> }.into_any(),
        (_, PASSKEYS_MAX..) => view! { <p>{Refusal::TooManyPasskeys.to_string()}</p> }.into_any(),
        _ => view! { <Addition form=forms.begin/> }.into_any(),
    };
    view! {
        {move || (count > 0 || run.get()).then(|| view! { <h2>"Passkeys"</h2> })}
        {list}
        {move || run.get().then(addition)}
    }
}

#[component]
fn Addition(form: FormState) -> impl IntoView {
    view! {
        <p>
            "You can use a passkey instead of a code from the app. Your phone, computer or \
             security key stores it, and no other site can use it. You still need your password."
        </p>
        <PostForm form>
            <Field
                label="Name"
                name="name"
                required=true
                hint="A name of your choice, such as the device that stores the passkey."
                form
            />
            <StepUpField form/>
            <SubmitButton label="Add a passkey" form/>
        </PostForm>
    }
}

fn listed(passkeys: &[PasskeyRecord], remove: FormState) -> AnyView {
    let table = Table::wide(passkeys)
        .column("Name", |passkey| passkey.name.clone())
        .time(in_zone("Added (UTC)"), |passkey| passkey.created_at)
        .styled("figures", in_zone("Last used (UTC)"), |passkey| {
            passkey
                .used_at
                .map_or_else(|| "never".into_any(), |at| view! { <DateTime at/> }.into_any())
        })
        .styled(BUTTONS, "Action", move |passkey| removal(passkey.id, remove))
        .in_region("Passkeys");
    view! {
        <FormAlert form=remove/>
        {table}
    }
    .into_any()
}

fn removal(id: i64, form: FormState) -> impl IntoView {
    let was_sent = form.was_sent("passkey", id.to_string());
    view! {
        <PostForm form inline=true>
            <input type="hidden" name="passkey" value=id.to_string()/>
            {move || was_sent.get().then(|| view! { <StepUpField form/> })}
            <SubmitButton label="Remove" form danger=true/>
        </PostForm>
    }
}
