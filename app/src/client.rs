//! Calls server functions: directly on the server, through `fetch` in the browser.
//!
//! Leptos's own client compiles the whole path from arguments to result once per function, which
//! makes the portal's WebAssembly 50% larger. Here all functions share one path.

use leptos::server_fn::ServerFn;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::problem::Problem;

/// The HTTP status of a refusal if a script sent the request. A refusal, such as a wrong password
/// or a name that is taken, is an ordinary answer, so its status is below 400. Browsers log every
/// status of 400 or more as an error on the page.
pub const STATUS_OF_REFUSALS: u16 = 299;

/// Calls a server function. In the browser, the call uses the HTTP method that the function
/// declares.
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

    /// Returns the problem for a request that got no response. A posted form may have arrived.
    fn unanswered(is_post: bool) -> Problem {
        if is_post { Cause::NoAnswer.into() } else { Cause::Unreachable.into() }
    }

    /// Returns the problem for a response that doesn't say what happened. A posted form may have
    /// taken effect.
    fn unexplained(is_post: bool) -> Problem {
        if is_post { Cause::Uncertain.into() } else { Cause::Failed.into() }
    }

    /// A call to a server function, with its arguments encoded as a form.
    #[derive(Clone, PartialEq)]
    pub struct Request {
        address: &'static str,
        form: String,
        is_post: bool,
    }

    impl Request {
        pub fn new<S: ServerFn + Serialize>(function: &S) -> Result<Self, Problem> {
            Self::of(S::PATH, serde_qs::to_string(function).ok(), <S::Protocol>::METHOD)
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

        /// Sends the request and reads the response.
        pub async fn send<T: DeserializeOwned>(self) -> Result<T, Problem> {
            let is_post = self.is_post;
            // A resource requires a `Send` future. A browser has only one thread.
            let text = SendWrapper::new(self.fetch_text()).await?;
            // This parser also reads the data embedded in the page. A second parser would make the
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

    /// Posts a form to a server function as the browser would. Returns the page to go to, if any.
    pub async fn post(address: &str, fields: &FormData) -> Result<Option<String>, Problem> {
        let form = UrlSearchParams::new_with_str_sequence_sequence(fields).map_err(not_sent)?;
        let answer = fetch(address, Some(&form)).await?;
        let headers = answer.headers();
        let next =
            headers.has(REDIRECT_HEADER).unwrap_or_default().then(|| headers.get("location"));
        Ok(next.and_then(Result::ok).flatten())
    }

    /// Sends a POST if there is a form, otherwise a GET.
    async fn fetch(address: &str, form: Option<&UrlSearchParams>) -> Result<Response, Problem> {
        let request = RequestInit::new();
        let is_post = form.is_some();
        if let Some(form) = form {
            request.set_method("POST");
            request.set_body(form);
        }
        let answer = leptos::prelude::window().fetch_with_str_and_init(address, &request);
        let answer = JsFuture::from(answer).await.map_err(|_| unanswered(is_post))?;
        let answer: Response = answer.unchecked_into();
        match answer.status() {
            STATUS_OF_REFUSALS => Err(Problem::de(text(&answer, is_post).await?.into())),
            // Our own 429 and 503 responses carry the header of a server function's error. A
            // proxy's responses don't.
            429 | 503 if has_problem(&answer) => {
                Err(Problem::de(text(&answer, is_post).await?.into()))
            }
            200..=299 => Ok(answer),
            // The server refused the request before the function ran.
            400..=499 => Err(Cause::Failed.into()),
            _ => Err(unexplained(is_post)),
        }
    }

    /// Whether the response says why a server function refused the request.
    fn has_problem(answer: &Response) -> bool {
        let header = answer.headers().has(SERVER_FN_ERROR_HEADER);
        header.unwrap_or_default()
    }

    async fn text(answer: &Response, is_post: bool) -> Result<String, Problem> {
        let unanswered = |_: JsValue| unanswered(is_post);
        let text = JsFuture::from(answer.text().map_err(unanswered)?).await.map_err(unanswered)?;
        Ok(text.as_string().unwrap_or_default())
    }

    /// Returns the problem for a form that couldn't be encoded, and so wasn't sent.
    fn not_sent(_: JsValue) -> Problem {
        Cause::Failed.into()
    }
}
