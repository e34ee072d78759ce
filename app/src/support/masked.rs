//! Messages without their texts, and the form that shows a text.

use domain::Transid;
use domain::support::MaskedMessage;
use leptos::prelude::*;

use crate::problem::Problem;
use crate::ui::{BUTTONS, FormState, PostForm, StateMark, SubmitButton, Table};
#[cfg(feature = "ssr")]
use {
    crate::portal_request::{redirect_to, staff},
    service::Actor,
};

/// Returns the session entry that holds a message's text until the page shows it.
#[cfg(feature = "ssr")]
pub fn text_name(transid: Transid) -> String {
    format!("text-{transid}")
}

/// Shows the text of a message once, on the message's page. The audit log records it.
#[server(prefix = "/fn", endpoint = "show-text")]
pub async fn show_text(transid: Transid) -> Result<(), Problem> {
    let (current, account) = staff().await?;
    let actor = Actor::Account(account.id);
    let text = current.service().support().show_text(&actor, transid).await?;
    let kept = current.keep_text(&text_name(transid), &text).await;
    kept.map_err(Problem::after_change)?;
    redirect_to(&format!("/support/messages/{transid}"))
}

/// Renders the button that shows the text of a message.
#[component]
pub fn ShowTextForm(transid: Transid, form: FormState) -> impl IntoView {
    view! {
        <PostForm form inline=true>
            <input type="hidden" name="transid" value=transid.to_string()/>
            <SubmitButton label="Show text" form about=format!("of message {transid}")/>
        </PostForm>
    }
}

/// Returns the length of a text, which is shown in place of the text. An erased text has none.
pub fn masked(chars: usize) -> String {
    match chars {
        0 => "erased".to_owned(),
        1 => "1 character".to_owned(),
        _ => format!("{chars} characters"),
    }
}

/// Returns a table of messages without their texts. The caller can add columns.
pub fn masked_table<T>(
    rows: &[T],
    message: impl Fn(&T) -> &MaskedMessage + Copy,
    form: FormState,
) -> Table<'_, T> {
    Table::wide(rows)
        .time("Time (UTC)", move |row| message(row).created_at)
        .styled("key", "Transaction ID", move |row| {
            let transid = message(row).transid.to_string();
            let href = format!("/support/messages/{transid}");
            view! { <a href=href>{transid}</a> }
        })
        .styled("figures", "Number", move |row| message(row).number.clone())
        .styled("key", "Request ID", move |row| message(row).requestid.clone().unwrap_or_default())
        .column("Text", move |row| masked(message(row).chars))
        .column("Status", move |row| {
            let test = message(row).test;
            view! {
                <StateMark state=message(row).status/>
                {test.then(|| view! { " " <span class="tag">"test"</span> })}
            }
        })
        .styled(BUTTONS, "Action", move |row| {
            let MaskedMessage { transid, chars, .. } = *message(row);
            (chars > 0).then(|| view! { <ShowTextForm transid form/> })
        })
}
