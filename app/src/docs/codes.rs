//! The table of codes, from the list that the API itself answers by.

use domain::Reason;
use domain::reason::CODE_SUCCESS;
use leptos::prelude::*;

/// Every code, HTTP status and reason.
#[component]
pub fn Codes() -> impl IntoView {
    view! {
        <h2 id="codes">"Codes"</h2>
        <p>
            "Programs match " <code>"code"</code> " or, more exactly, " <code>"reason"</code>
            "; both are stable. The words are for people and may change. Whatever the code but 200: nothing was stored and nothing charged."
        </p>
        <div class="table-scroll" tabindex="0" role="region" aria-label="Codes and reasons">
            <table class="stacks">
                <thead>
                    <tr>
                        <th scope="col" class="amount">"Code"</th>
                        <th scope="col" class="amount">"HTTP"</th>
                        <th scope="col">"Reason"</th>
                        <th scope="col">"Meaning"</th>
                    </tr>
                </thead>
                <tbody>
                    <Row
                        code=CODE_SUCCESS
                        http=CODE_SUCCESS
                        reason="none"
                        meaning="Done: the message is stored and charged once."
                    />
                    {Reason::ALL
                        .into_iter()
                        .map(|reason| {
                            view! {
                                <Row
                                    code=reason.code()
                                    http=reason.http_status()
                                    reason=reason.as_str()
                                    meaning=reason.sentence()
                                />
                            }
                        })
                        .collect_view()}
                </tbody>
            </table>
        </div>
    }
}

#[component]
fn Row(code: u16, http: u16, reason: &'static str, meaning: &'static str) -> impl IntoView {
    view! {
        <tr>
            <td data-label="Code" class="amount">{code.to_string()}</td>
            <td data-label="HTTP" class="amount">{http.to_string()}</td>
            <td data-label="Reason" class="key">{reason}</td>
            <td data-label="Meaning">{meaning}</td>
        </tr>
    }
}
