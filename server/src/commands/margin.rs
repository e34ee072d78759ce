//! `heliograph margin`.

use domain::Timestamp;
use domain::records::{MarginFigures, MarginLine};
use serde::Serialize;
use service::Service;

use super::output::Column;
use super::{CommandError, Output};
use crate::cli::Margin;
use crate::json::Amount;

/// The figures of a day, an application and a prefix, as the command line shows them.
#[derive(Serialize)]
struct Line {
    day: String,
    application: String,
    prefix: String,
    messages: i64,
    pages: i64,
    segments: i64,
    segments_per_page: String,
    segments_without_cost: i64,
    money_in: Amount,
    money_out: Amount,
    margin: Amount,
}

impl From<MarginLine> for Line {
    fn from(line: MarginLine) -> Self {
        let MarginFigures { messages, pages, segments, unpriced, charged, cost } = line.figures;
        Self {
            day: Timestamp::of_day(line.day).to_date(),
            application: line.reference.to_string(),
            prefix: line.rule,
            messages,
            pages,
            segments,
            segments_per_page: line.figures.ratio(),
            segments_without_cost: unpriced,
            money_in: Amount(charged),
            money_out: Amount(cost),
            margin: Amount(line.figures.margin()),
        }
    }
}

const COLUMNS: [Column<Line>; 10] = [
    ("DAY", |line| line.day.clone()),
    ("APPLICATION", |line| line.application.clone()),
    ("PREFIX", |line| line.prefix.clone()),
    ("MESSAGES", |line| line.messages.to_string()),
    ("PAGES", |line| line.pages.to_string()),
    ("SEGMENTS", |line| line.segments.to_string()),
    ("PER PAGE", |line| line.segments_per_page.clone()),
    ("MONEY IN", |line| line.money_in.0.to_string()),
    ("MONEY OUT", |line| line.money_out.0.to_string()),
    ("MARGIN", |line| line.margin.0.to_string()),
];

pub async fn run(service: &Service, days: Margin, output: Output) -> Result<(), CommandError> {
    let messages = service.messages();
    let lines = messages.margin_lines((days.from.day(), days.to.day()));
    Ok(output.list::<Line>(lines.await?, &COLUMNS)?)
}
