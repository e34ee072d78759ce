//! The columns of the list of messages. The page's address says which of them are shown.

use leptos::prelude::*;

use super::filter::ReportFilter;
use crate::ui::in_zone;

/// A column that users can show or hide. The column with the transaction ID is always shown,
/// because it links to a message's page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    Time,
    Number,
    Message,
    Status,
    Sender,
    Completed,
    Pages,
    Segments,
    Cost,
    Request,
    Batch,
}

/// Every column, with its value in the address, and whether the list shows it by default.
const ALL: [(Column, &str, bool); 11] = [
    (Column::Time, "time", true),
    (Column::Number, "number", true),
    (Column::Message, "message", true),
    (Column::Status, "status", true),
    (Column::Sender, "sender", false),
    (Column::Completed, "completed", false),
    (Column::Pages, "pages", true),
    (Column::Segments, "segments", true),
    (Column::Cost, "cost", true),
    (Column::Request, "request", false),
    (Column::Batch, "batch", false),
];
/// The value in the address that hides every column.
const NONE: &str = "transid";

impl Column {
    /// Returns the heading.
    pub fn name(self) -> &'static str {
        match self {
            Self::Time => in_zone("Time (UTC)"),
            Self::Number => "Number",
            Self::Message => "Message",
            Self::Status => "Status",
            Self::Sender => "Sender",
            Self::Completed => in_zone("Completed (UTC)"),
            Self::Pages => "Pages",
            Self::Segments => "Segments",
            Self::Cost => "Cost",
            Self::Request => "Request",
            Self::Batch => "Batch",
        }
    }
}

/// Returns the columns that an address selects. `words` holds their values, separated by dots.
/// Unknown values are ignored. If no known value is left, the list has its default columns.
pub fn chosen(words: &str) -> Vec<Column> {
    let has = |word: &str| words.split('.').any(|one| one == word);
    let is_chosen = has(NONE) || ALL.iter().any(|(_, word, _)| has(word));
    let all = ALL.into_iter();
    all.filter(|(_, word, usual)| if is_chosen { has(word) } else { *usual })
        .map(|(column, _, _)| column)
        .collect()
}

/// Returns the value for the address after showing or hiding the column `changed`. The default
/// columns need no value.
fn words_after(columns: &[Column], changed: Column) -> String {
    let is_shown = |column| columns.contains(&column) != (column == changed);
    if ALL.iter().all(|(column, _, usual)| is_shown(*column) == *usual) {
        return String::new();
    }
    let words = ALL.iter().filter(|(column, _, _)| is_shown(*column));
    let words: Vec<_> = words.map(|(_, word, _)| *word).collect();
    if words.is_empty() { NONE.to_owned() } else { words.join(".") }
}

/// Renders a link for each column that shows or hides it, and a link that restores the default
/// columns. The list of links stays open if the columns were changed.
pub fn choices(filter: &ReportFilter) -> impl IntoView + use<> {
    let columns = chosen(&filter.columns);
    let address = |words: String| {
        let address = filter.page_with(|filter| filter.columns = words);
        format!("{address}#messages")
    };
    let links: Vec<_> = ALL
        .iter()
        .map(|(column, _, _)| {
            let href = address(words_after(&columns, *column));
            let (class, what, mark) = if columns.contains(column) {
                ("chip", "Hide column ", "×")
            } else {
                ("chip chip-off", "Show column ", "+")
            };
            view! {
                <li>
                    <a class=class href=href>
                        <span class="visually-hidden">{what}</span>
                        <span class="chip-text">{column.name()}</span>
                        <span aria-hidden="true">{mark}</span>
                    </a>
                </li>
            }
        })
        .collect();
    let is_changed = !filter.columns.is_empty();
    let usual = is_changed.then(|| {
        let href = address(String::new());
        view! { <p><a href=href>"Show the usual columns"</a></p> }
    });
    view! {
        <details open=is_changed>
            <summary>"Choose columns"</summary>
            <ul class="chips columns" aria-label="Columns">{links}</ul>
            {usual}
        </details>
    }
}

#[cfg(test)]
mod tests {
    use super::{ALL, Column, chosen, words_after};

    #[test]
    fn the_address_chooses_columns_by_their_words() {
        let usual = chosen("");
        assert_eq!(usual.len(), 7);
        assert!(!usual.contains(&Column::Sender));
        assert_eq!(chosen("rubbish..%00"), usual);
        assert_eq!(chosen("cost.time.cost.rubbish"), [Column::Time, Column::Cost]);
        assert_eq!(chosen("transid"), []);
    }

    #[test]
    fn a_column_is_added_and_taken_away_and_the_usual_ones_need_no_word() {
        let usual = chosen("");
        let with_sender = words_after(&usual, Column::Sender);
        assert_eq!(with_sender, "time.number.message.status.sender.pages.segments.cost");
        assert_eq!(words_after(&chosen(&with_sender), Column::Sender), "");
        assert_eq!(words_after(&[Column::Cost], Column::Cost), "transid");
        for (column, word, _) in ALL {
            assert_eq!(words_after(&[], column), word);
            assert_eq!(chosen(word), [column]);
        }
    }
}
