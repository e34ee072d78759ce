//! The findings of a check of an endpoint.

use domain::endpoint_check::{CheckRequest, Finding, Verdict};
use leptos::prelude::*;

use crate::ui::Table;

/// Renders the findings.
pub fn findings_section(findings: &[Finding]) -> AnyView {
    let worst = findings.iter().map(|finding| finding.verdict).max();
    let summary = match worst {
        Some(Verdict::Good) => "Your endpoint passed all checks.",
        Some(Verdict::Advice) => "Your endpoint works. We have advice:",
        _ => "Your endpoint has a problem:",
    };
    let is_cut = findings.len() < CheckRequest::ALL.len();
    view! {
        <p><strong>{summary}</strong></p>
        {table(findings)}
        {is_cut
            .then(|| {
                view! {
                    <p>"We didn't send the other requests of the check, because the first one got no \
                        answer."</p>
                }
            })}
    }
    .into_any()
}

fn table(findings: &[Finding]) -> AnyView {
    Table::wide(findings)
        .column("Request", |finding| finding.request.name())
        .column("Answer", |finding| match finding.status {
            Some(status) => format!("Status {status} after {} ms", finding.latency_ms),
            None => format!("No answer after {} ms", finding.latency_ms),
        })
        .state("Result", |finding| finding.verdict)
        .column("What it means", |finding| finding.words.clone())
        .in_region("Findings of the check")
}

/// Explains the check beside its button.
pub fn about() -> impl IntoView {
    view! {
        <p class="fine">
            "Check endpoint sends four requests: a test event, a forged event with a wrong \
             signature, the test event again, and an event with an old timestamp. It takes up to 25 \
             seconds. We then tell you what your endpoint does right and wrong."
        </p>
    }
}
