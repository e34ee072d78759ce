//! Tables: one row per record, built column by column.

use std::fmt::Display;

use domain::Timestamp;
use leptos::prelude::*;

use super::state::State;
use super::{DateTime, StateMark};

/// The class of tables whose rows become lists on a narrow screen.
const STACKED: &str = "stacks";
/// The class of tables whose rows take few lines on a narrow screen. The style sheet places their
/// cells by heading.
const COMPACT: &str = "stacks compact";
const COMPACT_LINKS: &str = "stacks compact links";
/// The classes of wide tables whose rows are links as a whole.
const LINKS: &str = "stacks links";
/// The class of tables that are no wider than their content.
const NARROW: &str = "narrow";
/// The class of cells with buttons.
pub const BUTTONS: &str = "row-action";

/// A table with a row for each value. Columns are added from left to right.
pub struct Table<'a, T> {
    class: &'static str,
    values: &'a [T],
    headings: Vec<AnyView>,
    /// The cells of each row.
    rows: Vec<Vec<AnyView>>,
}

impl<'a, T> Table<'a, T> {
    /// Creates a wide table. On a narrow screen, each row becomes a list.
    pub fn wide(values: &'a [T]) -> Self {
        Self::new(STACKED, values)
    }

    /// Creates a table with few columns. The cells of its first column are row headings.
    pub fn narrow(values: &'a [T]) -> Self {
        Self::new(NARROW, values)
    }

    /// Creates a table that only scrolls on a narrow screen, and whose rows have no headings.
    pub fn plain(values: &'a [T]) -> Self {
        Self::new("", values)
    }

    /// Makes each row of a wide table take few lines on a narrow screen.
    pub fn compact(self) -> Self {
        Self { class: COMPACT, ..self }
    }

    /// Makes each row of a wide table a link: the one with the class `row-link` in it.
    pub fn with_links(self) -> Self {
        let class = if self.class == COMPACT { COMPACT_LINKS } else { LINKS };
        Self { class, ..self }
    }

    fn new(class: &'static str, values: &'a [T]) -> Self {
        Self {
            class,
            values,
            headings: Vec::new(),
            rows: values.iter().map(|_| Vec::new()).collect(),
        }
    }

    pub fn column<V: IntoView + 'static>(
        self,
        heading: &'static str,
        cell: impl Fn(&T) -> V,
    ) -> Self {
        self.styled("", heading, cell)
    }

    /// Adds a column whose cells have a class. For the class [`BUTTONS`], only screen readers get
    /// the heading.
    pub fn styled<V: IntoView + 'static>(
        self,
        class: &'static str,
        heading: &'static str,
        cell: impl Fn(&T) -> V,
    ) -> Self {
        self.add(class, heading, heading.to_owned(), cell)
    }

    /// Adds a column of times.
    pub fn time<A: Into<Option<Timestamp>>>(
        self,
        heading: &'static str,
        at: impl Fn(&T) -> A,
    ) -> Self {
        let cell = |value: &T| at(value).into().map(|at| view! { <DateTime at/> });
        self.styled("figures", heading, cell)
    }

    /// Adds a column of states.
    pub fn state<S: Into<State>>(self, heading: &'static str, state: impl Fn(&T) -> S) -> Self {
        self.column(heading, |value| view! { <StateMark state=state(value)/> })
    }

    /// Adds a column of numbers.
    pub fn amount<D: Display>(self, heading: &'static str, amount: impl Fn(&T) -> D) -> Self {
        self.styled("amount", heading, |value| amount(value).to_string())
    }

    /// Adds a column of amounts of money.
    pub fn money<D: Display>(
        self,
        heading: &'static str,
        currency: &str,
        amount: impl Fn(&T) -> D,
    ) -> Self {
        let shown = format!("{heading} ({currency})");
        self.add("amount", heading, shown, |value| amount(value).to_string())
    }

    /// Adds a column to a narrow or plain table. The heading is computed at run time.
    pub fn titled<V: IntoView + 'static>(
        self,
        class: &'static str,
        heading: String,
        cell: impl Fn(&T) -> V,
    ) -> Self {
        self.add(class, "", heading, cell)
    }

    fn add<V: IntoView + 'static>(
        mut self,
        class: &'static str,
        heading: &'static str,
        shown: String,
        cell: impl Fn(&T) -> V,
    ) -> Self {
        let names_rows = self.class == NARROW && self.headings.is_empty();
        for (value, row) in self.values.iter().zip(&mut self.rows) {
            let content = cell(value).into_any();
            row.push(cell_element(class, heading, names_rows, content));
        }
        self.headings.push(column_heading(class, shown));
        self
    }

    /// Renders the table.
    pub fn view(self) -> AnyView {
        let rows = self.rows.into_iter();
        let rows: Vec<_> = rows.map(|cells| view! { <tr>{cells}</tr> }).collect();
        view! {
            <table class=self.class>
                <thead><tr>{self.headings}</tr></thead>
                <tbody>{rows}</tbody>
            </table>
        }
        .into_any()
    }

    /// Renders the table in a scrolling region.
    pub fn in_region(self, label: impl Into<String>) -> AnyView {
        let label = label.into();
        let table = self.view();
        view! { <TableRegion label>{table}</TableRegion> }.into_any()
    }

    /// Renders the table in a scrolling region, or a sentence if the table has no rows.
    pub fn in_region_or(self, label: &'static str, sentence: impl IntoView + 'static) -> AnyView {
        if self.rows.is_empty() {
            view! { <p class="empty">{sentence}</p> }.into_any()
        } else {
            self.in_region(label)
        }
    }
}

fn column_heading(class: &'static str, shown: String) -> AnyView {
    let heading = match class {
        // The buttons have labels of their own.
        BUTTONS => view! { <span class="visually-hidden">{shown}</span> }.into_any(),
        _ => shown.into_any(),
    };
    let class = (class == "amount").then_some(class);
    view! { <th scope="col" class=class>{heading}</th> }.into_any()
}

fn cell_element(
    class: &'static str,
    heading: &'static str,
    names_rows: bool,
    content: AnyView,
) -> AnyView {
    let class = (!class.is_empty()).then_some(class);
    if names_rows {
        view! { <th scope="row" class=class>{content}</th> }.into_any()
    } else {
        view! { <td data-label=heading class=class>{content}</td> }.into_any()
    }
}

/// A region that scrolls if it is narrower than its table. It can be scrolled by keyboard too.
#[component]
pub fn TableRegion(
    /// The table's name for screen readers.
    #[prop(into)]
    label: String,
    children: Children,
) -> impl IntoView {
    view! {
        <div class="table-scroll" tabindex="0" role="region" aria-label=label>{children()}</div>
    }
}
