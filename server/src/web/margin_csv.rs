//! The figures of the margin page as a CSV file, for staff.

use app::support::margin_days;
use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use domain::records::MarginLine;
use domain::{Timestamp, Zone};

use super::csv_file::CsvFile;
use super::portal_request::Portal;
use super::signed_in::{Refused, Staff};
use crate::report_csv;

/// The names of the columns.
const NAMES: [&str; 12] = [
    "day",
    "application",
    "prefix",
    "messages",
    "pages",
    "segments",
    "segments_per_page",
    "segments_without_cost",
    "money_in",
    "money_out",
    "margin",
    "currency",
];

/// `GET /support/margin.csv`, with the days of the page.
pub async fn download(
    State(Portal { service, site, .. }): State<Portal>,
    Staff(staff): Staff,
) -> Result<Response, Refused> {
    let day = |name| staff.parameter(name).filter(|text| !text.is_empty());
    let days = margin_days(service.clock().now(), day("from").as_deref(), day("to").as_deref())?;
    let lines = service.messages().margin_lines(days).await?;
    let form = CsvFile::of(&staff, "margin", Zone::default(), service.clock().now());
    let body = file(&form, &lines, &site.currency)?;
    Ok(form.attachment(Body::from(body)))
}

/// Returns a line with the names, and a line for each day, application and prefix.
fn file(form: &CsvFile, lines: &[MarginLine], currency: &str) -> Result<Vec<u8>, csv::Error> {
    let row = |line: &MarginLine| {
        let figures = &line.figures;
        [
            Timestamp::of_day(line.day).to_date(),
            line.reference.to_string(),
            line.rule.clone(),
            figures.messages.to_string(),
            figures.pages.to_string(),
            figures.segments.to_string(),
            figures.ratio(),
            figures.unpriced.to_string(),
            figures.charged.to_string(),
            figures.cost.to_string(),
            figures.margin().to_string(),
            currency.to_owned(),
        ]
    };
    let lines = lines.iter().map(|line| form.cells(NAMES, row(line)));
    Ok([form.header(NAMES)?, report_csv::write(lines)?].concat())
}

#[cfg(test)]
mod tests {
    use domain::records::{MarginFigures, MarginLine};
    use domain::{Money, Reference, Zone};

    use super::super::csv_file::CsvFile;

    #[test]
    fn a_line_has_the_figures_and_what_follows_from_them() {
        let line = MarginLine {
            day: 20_454,
            rule: "27".to_owned(),
            reference: Reference::parse("012345").unwrap(),
            figures: MarginFigures {
                messages: 2,
                pages: 2,
                segments: 5,
                unpriced: 1,
                charged: Money::from_micros(100_000),
                cost: Money::from_micros(120_000),
            },
        };
        let file = |form: &CsvFile| {
            String::from_utf8(super::file(form, std::slice::from_ref(&line), "USD").unwrap())
                .unwrap()
        };
        let sheet = file(&CsvFile::named("margin", Some(Zone::default())));
        assert!(sheet.starts_with("\u{feff}day,"), "{sheet}");
        assert!(sheet.ends_with(",2.50,1,0.10,0.12,-0.02,USD\r\n"), "{sheet}");
        let file = file(&CsvFile::named("margin", None));
        let (names, rest) = file.split_once("\r\n").unwrap();
        assert_eq!(names.split(',').count(), 12);
        assert_eq!(rest, "2026-01-01,012345,27,2,2,5,2.50,1,0.1,0.12,-0.02,USD\r\n");
    }
}
