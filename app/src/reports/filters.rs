//! The form of the reports' filters.

use domain::{Category, MessageStatus, Reference};
use leptos::prelude::*;

use crate::problem::Problem;
use crate::reports::ReportFilter;
use crate::ui::{Choice, Field, FormState, SearchForm};

#[component]
pub fn Filters(
    applications: Vec<(Reference, Category)>,
    filter: ReportFilter,
    problem: Option<Problem>,
) -> impl IntoView {
    let any = || (String::new(), "any".to_owned());
    let applications = std::iter::once(any())
        .chain(applications.into_iter().map(|(reference, category)| {
            (reference.to_string(), format!("{category} {reference}"))
        }))
        .collect();
    let statuses = std::iter::once(any())
        .chain(
            MessageStatus::ALL
                .into_iter()
                .map(|status| (status.as_str().to_owned(), status.as_str().to_owned())),
        )
        .collect();
    let form = FormState::plain("filter-alert", problem);
    view! {
        <SearchForm path="/reports" label="Reports" button="Apply filters" with_clear=true form>
            <Choice
                label="Application"
                name="application"
                options=applications
                chosen=filter.application
            />
            <Choice label="Status" name="status" options=statuses chosen=filter.status/>
            <Field label="Number" name="number" value=filter.number form/>
            <Field label="Request id" name="requestid" value=filter.requestid form/>
            <Field label="Transid" name="transid" value=filter.transid form/>
            <Field label="Batchid" name="batchid" value=filter.batchid form/>
            <Field label="From (UTC)" name="from" kind="date" value=filter.from form/>
            <Field label="To (UTC)" name="to" kind="date" value=filter.to form/>
        </SearchForm>
    }
}
