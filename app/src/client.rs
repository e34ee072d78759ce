//! How pages call server functions: directly on the server, by `fetch` in the browser.
//!
//! The library's own way compiles the whole path from arguments to answer anew for each function,
//! which makes the portal's WebAssembly half as large again. Here all functions share one path.

use leptos::server_fn::ServerFn;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::problem::Problem;

/// The HTTP status of a refusal that scripts asked for. A refusal (a wrong password, a name that is
/// taken) is an answer like any other, while browsers report every status from 400 up as an error
/// of the page.
pub const STATUS_OF_REFUSALS: u16 = 299;

/// Calls a server function, in a browser by the HTTP method that the function is declared with.
pub async fn call<S>(function: S) -> Result<S::Output, Problem>
where
    S: ServerFn<Error = Problem> + Serialize,
    S::Output: DeserializeOwned,
{
    #[cfg(feature = "ssr")]
    return S::run_body(function).await;
    #[cfg(not(feature = "ssr"))]
    Request::new(&function)?.send().await
}

#[cfg(feature = "hydrate")]
pub(crate) use browser::post;

#[cfg(not(feature = "ssr"))]
pub(crate) use browser::Request;

#[cfg(not(feature = "ssr"))]
mod browser {
    use leptos::server_fn::error::{FromServerFnError as _, SERVER_FN_ERROR_HEADER};
    use leptos::server_fn::redirect::REDIRECT_HEADER;
    use leptos::server_fn::{Protocol as _, ServerFn};
    use leptos::wasm_bindgen::{JsCast as _, JsValue};
    use send_wrapper::SendWrapper;
    use serde::Serialize;
    use serde::de::DeserializeOwned;
    use wasm_bindgen_futures::JsFuture;
    use web_sys::{FormData, RequestInit, Response, UrlSearchParams};

    use super::STATUS_OF_REFUSALS;
    use crate::problem::{Cause, Problem};

    /// The problem when no answer came: what was posted may have arrived.
    fn unanswered(is_post: bool) -> Problem {
        if is_post {
            Cause::NoAnswer.into()
        } else {
            Cause::Unreachable.into()
        }
    }

    /// The problem when an answer came that says nothing: what was posted may have been done.
    fn unexplained(is_post: bool) -> Problem {
        if is_post {
            Cause::Uncertain.into()
        } else {
            Cause::Failed.into()
        }
    }

    /// A call of a server function, with its arguments as a form.
    #[derive(Clone, PartialEq)]
    pub struct Request {
        address: &'static str,
        form: String,
        is_post: bool,
    }

    impl Request {
        pub fn new<S: ServerFn + Serialize>(function: &S) -> Result<Self, Problem> {
            Self::of(
                S::PATH,
                serde_qs::to_string(function).ok(),
                <S::Protocol>::METHOD,
            )
        }

        fn of(
            address: &'static str,
            form: Option<String>,
            method: http::Method,
        ) -> Result<Self, Problem> {
            Ok(Self {
                address,
                form: form.ok_or_else(|| Problem::from(Cause::Failed))?,
                is_post: method == http::Method::POST,
            })
        }

        /// Sends the request and reads the answer.
        pub async fn send<T: DeserializeOwned>(self) -> Result<T, Problem> {
            let is_post = self.is_post;
            // A resource takes a future only if it is `Send`; a browser has one thread.
            let text = SendWrapper::new(self.fetch_text()).await?;
            // The same parser also reads the data in the page: a second one would make the
            // WebAssembly larger for each type.
            serde_json::from_str(&text).map_err(|_| unexplained(is_post))
        }

        async fn fetch_text(self) -> Result<String, Problem> {
            let answer = if self.is_post {
                let form = UrlSearchParams::new_with_str(&self.form).map_err(not_sent)?;
                fetch(self.address, Some(&form)).await?
            } else {
                fetch(&format!("{}?{}", self.address, self.form), None).await?
            };
            text(&answer, self.is_post).await
        }
    }

    /// Posts a form to a server function as the browser would, and gives the page to go to, if any.
    pub async fn post(address: &str, fields: &FormData) -> Result<Option<String>, Problem> {
        let form = UrlSearchParams::new_with_str_sequence_sequence(fields).map_err(not_sent)?;
        let answer = fetch(address, Some(&form)).await?;
        let headers = answer.headers();
        let next = headers
            .has(REDIRECT_HEADER)
            .unwrap_or_default()
            .then(|| headers.get("location"));
        Ok(next.and_then(Result::ok).flatten())
    }

    /// Asks by POST where there is a form, and by GET where there is none.
    async fn fetch(address: &str, form: Option<&UrlSearchParams>) -> Result<Response, Problem> {
        let request = RequestInit::new();
        let is_post = form.is_some();
        if let Some(form) = form {
            request.set_method("POST");
            request.set_body(form);
        }
        let answer = leptos::prelude::window().fetch_with_str_and_init(address, &request);
        let answer = JsFuture::from(answer)
            .await
            .map_err(|_| unanswered(is_post))?;
        let answer: Response = answer.unchecked_into();
        match answer.status() {
            STATUS_OF_REFUSALS => Err(Problem::de(text(&answer, is_post).await?.into())),
            // A busy service and a limit of ours have a server function's header; a proxy's answer
            // hasn't.
            429 | 503 if has_problem(&answer) => {
                Err(Problem::de(text(&answer, is_post).await?.into()))
            }
            200..=299 => Ok(answer),
            // The request was refused before its function ran.
            400..=499 => Err(Cause::Failed.into()),
            _ => Err(unexplained(is_post)),
        }
    }

    /// Whether a server function answers why it refuses.
    fn has_problem(answer: &Response) -> bool {
        let header = answer.headers().has(SERVER_FN_ERROR_HEADER);
        header.unwrap_or_default()
    }

    async fn text(answer: &Response, is_post: bool) -> Result<String, Problem> {
        let unanswered = |_: JsValue| unanswered(is_post);
        let text = JsFuture::from(answer.text().map_err(unanswered)?)
            .await
            .map_err(unanswered)?;
        Ok(text.as_string().unwrap_or_default())
    }

    /// A form that can't be written was not sent.
    fn not_sent(_: JsValue) -> Problem {
        Cause::Failed.into()
    }
}
