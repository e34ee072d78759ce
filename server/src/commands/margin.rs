//! `heliograph margin`.

use domain::Timestamp;
use domain::records::MarginLine;
use service::Service;

use super::output::Column;
use super::{CommandError, Output};
use crate::cli::Margin;
use crate::json::{Amount, shown};

shown! {
    /// The figures of a day, an application and a prefix, as the command line shows them.
    struct Line from line: MarginLine {
        day: String = Timestamp::of_day(line.day).to_date(),
        application: String = line.reference.to_string(),
        prefix: String = line.rule,
        messages: i64 = line.figures.messages,
        pages: i64 = line.figures.pages,
        segments: i64 = line.figures.segments,
        segments_per_page: String = line.figures.ratio(),
        segments_without_cost: i64 = line.figures.unpriced,
        money_in: Amount = Amount(line.figures.charged),
        money_out: Amount = Amount(line.figures.cost),
        margin: Amount = Amount(line.figures.margin()),
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
