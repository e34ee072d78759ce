//! The outcome of a check.

use domain::bulk::{FileFinding, FileReport, ForeignFile, Lines, PartReport};
use domain::number::LOCAL_DIGITS;
use domain::readiness::SpendCap;
use domain::{Money, NumberWarning};
use leptos::prelude::*;

use super::export::how_to_export;
use crate::reports::{counted, grouped};
use crate::ui::{DateTime, Table};

/// Rows that the user should check: a description, the API's warning if it has one, and the lines.
struct Doubt {
    rows: Lines,
    what: String,
    warning: &'static str,
}

#[component]
pub fn Report(
    report: FileReport,
    balance: Money,
    spend_cap: Option<SpendCap>,
    currency: String,
    country_code: String,
) -> impl IntoView {
    let is_bad = report.error_count > 0;
    let has_good = report.local.rows + report.international.rows > 0;
    let doubts = doubts(&report, &currency, &country_code);
    let doubts = (!doubts.is_empty()).then(|| listed_doubts(&doubts));
    view! {
        <section aria-labelledby="result">
            <h3 id="result">"Result"</h3>
            {verdict(&report)}
            {is_bad.then(|| faults(&report))}
            {has_good.then(|| price(&report, balance, &currency))}
            {spend_cap.map(|cap| above_limit(cap, &currency))}
            {doubts}
            {is_bad.then(how_to_export)}
        </section>
    }
}

/// Whether the file as a whole can't be read, so that nothing can be said about its lines.
fn is_unreadable(report: &FileReport) -> bool {
    let is_whole = |file: ForeignFile| {
        file.is_binary() || matches!(file, ForeignFile::Utf16 | ForeignFile::OldMac)
    };
    report.rows == 1 && report.findings.iter().any(|finding| is_whole(finding.file))
}

fn rows(count: u64) -> String {
    counted(count.cast_signed(), "row")
}

fn verdict(report: &FileReport) -> AnyView {
    let all = rows(report.rows);
    let sentence = match report.error_count {
        0 => {
            let sentence = format!("The file has {all}, and none is bad.");
            return view! { <p class="notice notice-good" role="status">{sentence}</p> }.into_any();
        }
        _ if report.rows == 0 => "The file is empty.".to_owned(),
        _ if is_unreadable(report) => {
            "We can't read this file. The API would refuse it, and nothing would be sent or \
             charged."
                .to_owned()
        }
        1 => format!(
            "The file has {all}, and one is bad. The API would refuse the whole file, and nothing \
             would be sent or charged."
        ),
        bad => format!(
            "The file has {all}, and {} are bad. The API would refuse the whole file, and nothing \
             would be sent or charged.",
            grouped(bad.cast_signed())
        ),
    };
    view! { <p class="alert" role="alert">{sentence}</p> }.into_any()
}

/// Renders the faults of the file and of its lines.
fn faults(report: &FileReport) -> impl IntoView + use<> {
    let findings: Vec<_> =
        report.findings.iter().map(|found| view! { <li>{described(found)}</li> }).collect();
    let findings = (!findings.is_empty()).then(|| view! { <ul class="findings">{findings}</ul> });
    let numbered = report.first_lines.iter().enumerate();
    let lines: Vec<_> = numbered.map(|(n, line)| format!("{}: {line}", n + 1)).collect();
    let first_lines = (!lines.is_empty()).then(|| {
        view! {
            <h4>"The first lines as we read them"</h4>
            <pre tabindex="0" dir="auto"><code>{lines.join("\n")}</code></pre>
        }
    });
    let has_lines = report.rows > 0 && !is_unreadable(report);
    view! {
        {findings}
        {first_lines}
        {has_lines.then(|| bad_lines(report))}
    }
}

fn bad_lines(report: &FileReport) -> impl IntoView + use<> {
    let count = report.errors.len();
    let is_cut = report.error_count > count as u64;
    let cut = is_cut.then(|| view! { <p>{format!("These are the first {count}.")}</p> });
    let table = Table::wide(&report.errors)
        .amount("Line", |(line, _)| *line)
        .column("What is wrong", |(_, sentence)| sentence.clone())
        .in_region("Bad lines");
    view! {
        <h4>"Bad lines"</h4>
        {cut}
        {table}
    }
}

fn described(found: &FileFinding) -> String {
    let sentence = found.file.sentence();
    if found.rows == 1 {
        return sentence.to_owned();
    }
    format!("{sentence} ({}, the first in line {})", rows(found.rows), found.line)
}

/// Renders the price of the good rows.
fn price(report: &FileReport, balance: Money, currency: &str) -> impl IntoView + use<> {
    let total = PartReport {
        rows: report.local.rows + report.international.rows,
        pages: report.pages(),
        cost: report.cost().unwrap_or_default(),
    };
    let parts =
        [("Local", report.local), ("International", report.international), ("Total", total)];
    let table = Table::narrow(&parts)
        .column("Numbers", |(name, _)| *name)
        .amount("Rows", |(_, part)| grouped(part.rows.cast_signed()))
        .amount("Pages", |(_, part)| grouped(part.pages.cast_signed()))
        .money("Price", currency, |(_, part)| part.cost.shown())
        .in_region("Price of the file");
    let left = balance.checked_sub(total.cost).filter(|left| *left >= Money::ZERO);
    let covered = if left.is_some() {
        format!("Your balance of {} {currency} covers these rows.", balance.shown())
    } else {
        let missing = total.cost.checked_sub(balance).unwrap_or_default();
        format!(
            "Your balance is {} {currency}, so {} {currency} are missing. The API would refuse the \
             file.",
            balance.shown(),
            missing.shown()
        )
    };
    let of_good = (report.error_count > 0)
        .then(|| view! { <p>"These figures cover only the rows that aren't bad."</p> });
    view! {
        <h4>"Price"</h4>
        {of_good}
        {table}
        <p>{covered}</p>
    }
}

fn above_limit(cap: SpendCap, currency: &str) -> impl IntoView + use<> {
    let max = format!("{} {currency}", cap.max.shown());
    view! {
        <p>
            "The API would refuse the file, because today's limit of " {max}
            " doesn't leave enough for it. The limit starts again "
            <DateTime at=cap.until with_zone=true/> "."
        </p>
    }
}

fn doubts(report: &FileReport, currency: &str, country_code: &str) -> Vec<Doubt> {
    let doubtful = report.doubtful.iter().map(|(warning, lines)| Doubt {
        rows: lines.clone(),
        what: match warning {
            NumberWarning::LooksLocal => format!(
                "The number is the country code {country_code} and {LOCAL_DIGITS} digits. Without \
                 the code it is local, and costs less."
            ),
            NumberWarning::LeadingZero => {
                "The number begins with 0, but no country code does.".to_owned()
            }
            NumberWarning::NearLocal => {
                format!("The number has 7 or 9 digits, where a local number has {LOCAL_DIGITS}.")
            }
        },
        warning: warning.as_str(),
    });
    let repeated = Doubt {
        rows: report.repeated.clone(),
        what: "An earlier row has the same number. The recipient gets both messages, and you pay \
               for both."
            .to_owned(),
        warning: "",
    };
    let opted_out = Doubt {
        rows: report.opted_out.clone(),
        what: format!(
            "The recipient has opted out, and gets no message. The price of these rows, {} \
             {currency}, is reserved with the others and then released.",
            report.released.shown()
        ),
        warning: "opted_out",
    };
    doubtful.chain([repeated, opted_out]).filter(|doubt| doubt.rows.count > 0).collect()
}

fn listed_doubts(doubts: &[Doubt]) -> impl IntoView + use<> {
    let table = Table::wide(doubts)
        .amount("Rows", |doubt| grouped(doubt.rows.count.cast_signed()))
        .column("What we noticed", |doubt| doubt.what.clone())
        .column("Lines", |doubt| lines(&doubt.rows))
        .styled("key", "API warning", |doubt| doubt.warning)
        .in_region("Doubtful rows");
    view! {
        <h4>"Check these rows"</h4>
        <p>"They can be uploaded, but they may be mistakes."</p>
        {table}
    }
}

/// Lists the first lines, for example `1, 5, 7 …`.
fn lines(rows: &Lines) -> String {
    let first: Vec<_> = rows.first.iter().map(u64::to_string).collect();
    let more = if rows.count > rows.first.len() as u64 { " …" } else { "" };
    first.join(", ") + more
}
