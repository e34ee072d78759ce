//! The theme setting of an account.

use domain::Theme;
use leptos::prelude::*;

#[cfg(feature = "ssr")]
use crate::portal_request::{redirect_to, signed_in};
use crate::problem::Problem;
use crate::ui::{Choice, FormState, PostForm, SubmitButton};

/// Sets the theme: `system`, `light` or `dark`.
#[server(prefix = "/fn", endpoint = "set-theme")]
pub async fn set_theme(theme: String) -> Result<(), Problem> {
    let keep = |problem: Problem| problem.typed("theme", &theme);
    let (current, account) = signed_in().await.map_err(keep)?;
    let theme = Theme::parse(&theme).ok_or(crate::problem::Cause::Unreadable)?;
    current.service().accounts().set_theme(account.id, theme).await?;
    current.keep_theme(theme);
    redirect_to("/account?theme=1")
}

#[component]
pub fn ThemeForm(chosen: Theme, form: FormState) -> impl IntoView {
    // The server writes the theme into each page that it renders. This page is already rendered.
    Effect::new(move || {
        if let Some(root) = document().document_element() {
            let _ = root.set_attribute("data-theme", chosen.as_str());
        }
    });
    let options = Theme::ALL.map(|theme| (theme.to_string(), in_words(theme).to_owned()));
    view! {
        <PostForm form>
            <Choice
                label="Theme"
                name="theme"
                options=options.into()
                chosen=form.typed("theme").unwrap_or_else(|| chosen.to_string())
            />
            <SubmitButton label="Save theme" form/>
        </PostForm>
    }
}

const fn in_words(theme: Theme) -> &'static str {
    match theme {
        Theme::System => "As your system",
        Theme::Light => "Light",
        Theme::Dark => "Dark",
    }
}
