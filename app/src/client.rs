//! How pages call server functions: directly on the server, by `fetch` in the browser.
//!
//! The library's own way compiles the whole path from arguments to answer anew for each function,
//! which makes the portal's WebAssembly half as large again. Here all functions share one path.

#[cfg(not(feature = "ssr"))]
use leptos::server_fn::Protocol as _;
use leptos::server_fn::ServerFn;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::problem::Problem;

/// The HTTP status of a refusal that scripts asked for. A refusal (a wrong password, a name that is
/// taken) is an answer like any other, while browsers report every status from 400 up as an error
/// of the page.
pub const STATUS_OF_REFUSALS: u16 = 299;

/// Calls a server function, in a browser by the HTTP method that the function is declared with.
///
/// # Errors
/// What the function refuses, or that there was no answer.
pub async fn call<S>(function: S) -> Result<S::Output, Problem>
where
    S: ServerFn<Error = Problem> + Serialize,
    S::Output: DeserializeOwned,
{
    #[cfg(feature = "ssr")]
    return S::run_body(function).await;
    #[cfg(not(feature = "ssr"))]
    browser::call(S::PATH, &function, <S::Protocol>::METHOD.into()).await
}

#[cfg(feature = "hydrate")]
pub(crate) use browser::post;

#[cfg(not(feature = "ssr"))]
mod browser {
    use leptos::server_fn::error::FromServerFnError as _;
    use leptos::server_fn::redirect::REDIRECT_HEADER;
    use leptos::wasm_bindgen::{JsCast as _, JsValue};
    use send_wrapper::SendWrapper;
    use serde::Serialize;
    use serde::de::DeserializeOwned;
    use wasm_bindgen_futures::JsFuture;
    use web_sys::{FormData, RequestInit, Response, UrlSearchParams};

    use super::STATUS_OF_REFUSALS;
    use crate::problem::{Cause, Problem};

    #[derive(Clone, Copy, PartialEq, Eq)]
    pub enum Method {
        Get,
        Post,
    }

    impl From<http::Method> for Method {
        fn from(method: http::Method) -> Self {
            if method == http::Method::GET {
                Self::Get
            } else {
                Self::Post
            }
        }
    }

    impl Method {
        /// The problem when no answer came: what was posted may have arrived.
        const fn unanswered(self) -> Cause {
            match self {
                Self::Get => Cause::Unreachable,
                Self::Post => Cause::NoAnswer,
            }
        }

        /// The problem when an answer came that says nothing: what was posted may have been done.
        const fn unexplained(self) -> Cause {
            match self {
                Self::Get => Cause::Failed,
                Self::Post => Cause::Uncertain,
            }
        }
    }

    /// Calls a server function with its arguments as a form, and reads its answer.
    ///
    /// # Errors
    /// What the function refuses, or that there was no answer.
    pub async fn call<A: Serialize, T: DeserializeOwned>(
        address: &str,
        arguments: &A,
        method: Method,
    ) -> Result<T, Problem> {
        let form = serde_qs::to_string(arguments).map_err(|_| Problem::from(Cause::Failed))?;
        // A resource takes a future only if it is `Send`; a browser has one thread.
        let text = SendWrapper::new(fetch_text(address, &form, method)).await?;
        // The same parser also reads the data in the page: a second one would make the
        // WebAssembly larger for each type.
        serde_json::from_str(&text).map_err(|_| method.unexplained().into())
    }

    /// Posts a form to a server function as the browser would, and gives the page to go to, if any.
    ///
    /// # Errors
    /// What the function refuses, or that there was no answer.
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

    async fn fetch_text(address: &str, form: &str, method: Method) -> Result<String, Problem> {
        let answer = match method {
            Method::Get => fetch(&format!("{address}?{form}"), None).await?,
            Method::Post => {
                let form = UrlSearchParams::new_with_str(form).map_err(not_sent)?;
                fetch(address, Some(&form)).await?
            }
        };
        text(&answer, method).await
    }

    /// Asks by POST where there is a form, and by GET where there is none.
    async fn fetch(address: &str, form: Option<&UrlSearchParams>) -> Result<Response, Problem> {
        let request = RequestInit::new();
        let mut method = Method::Get;
        if let Some(form) = form {
            method = Method::Post;
            request.set_method("POST");
            request.set_body(form);
        }
        let answer = leptos::prelude::window().fetch_with_str_and_init(address, &request);
        let answer = JsFuture::from(answer)
            .await
            .map_err(|_| Problem::from(method.unanswered()))?;
        let answer: Response = answer.unchecked_into();
        match answer.status() {
            STATUS_OF_REFUSALS => Err(Problem::de(text(&answer, method).await?.into())),
            200..=299 => Ok(answer),
            // The request was refused before its function ran.
            400..=499 => Err(Cause::Failed.into()),
            _ => Err(method.unexplained().into()),
        }
    }

    async fn text(answer: &Response, method: Method) -> Result<String, Problem> {
        let unanswered = |_: JsValue| Problem::from(method.unanswered());
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
