//! Passes the answers of server functions to forms, with and without JavaScript.
//!
//! With JavaScript, the page reads the answer itself. Without JavaScript, the browser is redirected
//! to the page that the function names. If the function names none, the browser goes back to the
//! page of the form, with the function's problem in a cookie. Typed text never gets into an
//! address, and an address from the client never leads to another site.
//!
//! If nobody is signed in any more, another cookie keeps the form, with and without JavaScript. The
//! form comes back to its page after the same account has signed in again.

use std::sync::Arc;

use app::client::STATUS_OF_REFUSALS;
use app::portal_request::{CallingPage, is_local};
use app::problem::{Cause, Problem, ReturnedForm, problem_anchor};
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::header::{
    ACCEPT, CONTENT_LENGTH, HOST, LOCATION, REFERER, REFRESH, RETRY_AFTER, SET_COOKIE,
};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use domain::Timestamp;
use leptos::server_fn::error::{FromServerFnError as _, SERVER_FN_ERROR_HEADER};
use serde::{Deserialize, Serialize};
use service::{Service, account_of_device};
use time::Duration;
use tower_sessions::Session;

use super::cookies::{self, is_https};
use super::seal::NONCE_BYTES;
use super::{guard, seal};

/// A kind of cookie that brings a form back to its page.
struct FormCookie {
    name: &'static str,
    /// How long the cookie is valid.
    kept: Duration,
    /// A prefix of the page that the cookie is sealed for. It keeps one kind of cookie from being
    /// used as the other.
    prefix: &'static str,
}

/// The maximum size of a form, in bytes. The largest form has a few lines. Without this limit,
/// server functions would read forms of any size into memory.
pub const FORM_BYTES_MAX: usize = 64 * 1024;

/// The cookie of a refused form, which comes back at once.
const REFUSED: FormCookie =
    FormCookie { name: "heliograph-form", kept: Duration::MINUTE, prefix: "" };
/// The cookie of a form that waits for a sign-in. It is valid for as long as a sign-in waits for
/// its code.
const SIGNED_OUT: FormCookie = FormCookie {
    name: "heliograph-signed-out-form",
    kept: Duration::minutes(10),
    prefix: "signed out ",
};
/// The session entry with a refused form whose cookie would be too long. It is sealed as in a
/// cookie, and the cookie is there too, without the typed text.
const LONG_FORM: &str = "long-form";
/// Browsers drop a cookie of more than 4,096 bytes, including its name and attributes.
const SEALED_BYTES_MAX: usize = 3_800;
/// The maximum size of a form that a session keeps. The longest message or note fits, with room for
/// a list of numbers.
const LONG_FORM_BYTES_MAX: usize = 32 * 1024;
/// How far the clock of the doctor's machine may be behind that of the server.
const CLOCKS_APART_MS: i64 = 3_600_000;
/// The maximum size of a problem. A problem repeats the typed text, and the size of a form is
/// limited.
const PROBLEM_BYTES_MAX: usize = 1024 * 1024;
/// The fields whose text is never kept.
const SECRETS: [&str; 7] =
    ["password", "new_password", "code", "recovery_code", "credential", "passkey", "token"];

/// Passes the answers of server functions to forms.
#[derive(Clone)]
pub struct Forms {
    pub service: Service,
    /// The key that seals the cookies. It is the same in all processes.
    pub key: Arc<str>,
    pub base_url: Arc<str>,
}

/// The content of a cookie. The cookie is sealed for the page of the form.
#[derive(Serialize, Deserialize)]
struct Sealed {
    at_ms: i64,
    /// The account that owns the form, if the form waits for a sign-in.
    account_id: Option<i64>,
    /// Whether the typed text is in the session, because it is too long for the cookie.
    is_long: bool,
    form: ReturnedForm,
}

/// A form that came back to its page.
struct Returned {
    cookie: &'static FormCookie,
    /// `None` if an account other than the owner has signed in.
    form: Option<ReturnedForm>,
}

/// The middleware of the portal's pages and server functions.
pub async fn return_forms(State(forms): State<Forms>, request: Request, next: Next) -> Response {
    if request.uri().path().starts_with("/fn/") {
        forms.call(request, next).await
    } else {
        forms.show(request, next).await
    }
}

impl Forms {
    /// Runs a server function. Hides from leptos that a browser asks for a page, and which page the
    /// request comes from. Otherwise leptos would redirect the browser to that page, even on
    /// another site, with the problem in the address.
    async fn call(&self, mut request: Request, next: Next) -> Response {
        let page = self.calling_page(request.headers());
        let accept = request.headers_mut().remove(ACCEPT);
        let wants_page = request.method() == Method::POST
            && accept.is_some_and(|kinds| kinds.to_str().is_ok_and(|k| k.contains("text/html")));
        request.headers_mut().remove(REFERER);
        if let Some(page) = page.clone() {
            request.extensions_mut().insert(CallingPage(page));
        }
        let owner = cookies::DEVICE
            .of(request.headers(), is_https(&self.base_url))
            .and_then(|cookie| account_of_device(&cookie));
        let session = request.extensions().get::<Session>().cloned();
        let (request, posted) = posted(request).await;
        let (mut response, refused) = refused(next.run(request).await).await;
        let kept = match (&refused, &page) {
            (Some(form), Some(page)) if form.problem.cause == Cause::SignedOut => {
                match posted.zip(owner) {
                    Some((text, owner)) => self.keep(form, &text, page, owner).await,
                    None => None,
                }
            }
            _ => None,
        };
        if wants_page {
            let limited = retry_after_of_limit(&response);
            let sentence = refused.as_ref().map(|form| form.problem.cause.sentence().into_owned());
            response = self.lead(response, refused, page.as_deref(), session).await;
            if let (Some(retry_after), Some(sentence)) = (limited, sentence) {
                response = wait_at_form(response, retry_after, sentence);
            }
        } else if refused.is_some()
            && response.status() == StatusCode::INTERNAL_SERVER_ERROR
            && let Ok(status) = StatusCode::from_u16(STATUS_OF_REFUSALS)
        {
            *response.status_mut() = status;
        }
        if let Some(cookie) = kept {
            response.headers_mut().append(SET_COOKIE, cookie);
        }
        response
    }

    /// Redirects a browser without scripts: to the page that the function names, or back to the
    /// form's page. If the form was refused, the address names the form, so that the browser
    /// scrolls to it.
    async fn lead(
        &self,
        response: Response,
        refused: Option<ReturnedForm>,
        page: Option<&str>,
        session: Option<Session>,
    ) -> Response {
        if refused.is_none() && !response.status().is_success() {
            // The response isn't from a server function.
            return response;
        }
        if let Some(next) = response.headers().get(LOCATION) {
            return led_to(next.clone());
        }
        let Some(page) = page else {
            return led_to(HeaderValue::from_static("/"));
        };
        let back = match &refused {
            Some(form) => format!("{page}#{}", problem_anchor(&form.function)),
            None => page.to_owned(),
        };
        let Ok(back) = HeaderValue::from_str(&back) else {
            return led_to(HeaderValue::from_static("/"));
        };
        let mut answer = led_to(back);
        if let Some(form) = refused
            && let Some(cookie) = self.cookie_of(&REFUSED, form, page, None, session).await
        {
            answer.headers_mut().append(SET_COOKIE, cookie);
        }
        answer
    }

    /// Returns the cookie that keeps a form until its account has signed in again. The form has
    /// every text that was posted, except secrets, whatever its function does with them.
    async fn keep(
        &self,
        form: &ReturnedForm,
        posted: &[u8],
        page: &str,
        owner: i64,
    ) -> Option<HeaderValue> {
        let mut form = form.clone();
        form.problem.cause = Cause::SignedOutBefore;
        if !posted.is_empty() {
            let typed = url::form_urlencoded::parse(posted).into_owned();
            let mut typed: Vec<_> =
                typed.filter(|(field, _)| !SECRETS.contains(&field.as_str())).collect();
            // A browser doesn't post a box that isn't ticked. The function knows that it is empty.
            for (field, text) in form.problem.typed {
                if typed.iter().all(|(posted, _)| *posted != field) {
                    typed.push((field, text));
                }
            }
            form.problem.typed = typed;
        }
        self.cookie_of(&SIGNED_OUT, form, page, Some(owner), None).await
    }

    /// Returns the page of this site that a request comes from.
    fn calling_page(&self, headers: &HeaderMap) -> Option<String> {
        let referer: Uri = headers.get(REFERER)?.to_str().ok()?.parse().ok()?;
        let origin = format!("{}://{}", referer.scheme_str()?, referer.authority()?);
        let page = referer.path_and_query()?.as_str();
        let host = headers.get(HOST).and_then(|host| host.to_str().ok());
        (guard::is_ours(&origin, host, &self.base_url) && is_local(page)).then(|| page.to_owned())
    }

    /// Returns the cookie that brings a form back to its page. If the form is too long for a
    /// cookie, the session keeps the text. If nobody is signed in, the text is lost: otherwise,
    /// strangers could fill the database.
    async fn cookie_of(
        &self,
        cookie: &FormCookie,
        form: ReturnedForm,
        page: &str,
        account_id: Option<i64>,
        session: Option<Session>,
    ) -> Option<HeaderValue> {
        let at_ms = self.service.clock().now().unix_ms();
        let mut sealed = Sealed { at_ms, account_id, is_long: false, form };
        let mut text = self.seal(cookie, &sealed, page)?;
        if text.len() > SEALED_BYTES_MAX {
            if let Some(session) = session
                && text.len() <= LONG_FORM_BYTES_MAX
                && self.is_signed_in(&session).await
            {
                sealed.is_long = session.insert(LONG_FORM, &text).await.is_ok();
            }
            sealed.form.problem.typed.clear();
            text = self.seal(cookie, &sealed, page)?;
        }
        self.cookie(cookie, text, cookie.kept)
    }

    /// Returns whether an account is signed in with a session. The session's ID alone proves
    /// nothing, because it comes from the client's cookie.
    async fn is_signed_in(&self, session: &Session) -> bool {
        let Some(id) = session.id() else {
            return false;
        };
        let found = self.service.accounts().session_follower(&id.to_string()).await;
        found.is_ok_and(|account| account.is_some())
    }

    fn seal(&self, cookie: &FormCookie, sealed: &Sealed, page: &str) -> Option<String> {
        seal_form(&self.key, cookie, sealed, page, self.service.entropy().bytes())
    }

    fn cookie(&self, cookie: &FormCookie, text: String, max_age: Duration) -> Option<HeaderValue> {
        let cookie = cookies::make(cookie.name, text, max_age, is_https(&self.base_url));
        HeaderValue::from_str(&cookie.to_string()).ok()
    }

    /// Shows a page. If a form came back to the page, shows it too, but only once.
    async fn show(&self, mut request: Request, next: Next) -> Response {
        let returned = if let Some(sealed) = self.opened(&REFUSED, &request) {
            let session = request.extensions().get::<Session>().cloned();
            let page = request.uri().path_and_query().map(ToString::to_string);
            let sealed = match (session, page) {
                (Some(session), Some(page)) if sealed.is_long => {
                    self.long_form(&session, &page, sealed).await
                }
                _ => sealed,
            };
            Some(Returned { cookie: &REFUSED, form: Some(sealed.form) })
        } else if let Some(sealed) = self.opened(&SIGNED_OUT, &request) {
            let session = request.extensions().get::<Session>().cloned();
            self.after_sign_in(sealed, session).await
        } else {
            None
        };
        let Some(Returned { cookie, form }) = returned else {
            return next.run(request).await;
        };
        if let Some(form) = form {
            request.extensions_mut().insert(form);
        }
        let mut response = next.run(request).await;
        if let Some(gone) = self.cookie(cookie, String::new(), Duration::ZERO) {
            response.headers_mut().append(SET_COOKIE, gone);
        }
        response
    }

    /// Returns a form that waited for a sign-in. The form keeps waiting while nobody is signed in.
    async fn after_sign_in(&self, sealed: Sealed, session: Option<Session>) -> Option<Returned> {
        let token = session?.id()?.to_string();
        let account = self.service.accounts().session_account(&token).await.ok()??;
        if self.service.accounts().must_set_up_factor(&account) {
            return None;
        }
        Some(Returned {
            cookie: &SIGNED_OUT,
            form: (sealed.account_id == Some(account.id)).then_some(sealed.form),
        })
    }

    /// Returns a form with the text that the session keeps, and removes it from the session. If
    /// another form was refused meanwhile, returns the form without its text.
    async fn long_form(&self, session: &Session, page: &str, sealed: Sealed) -> Sealed {
        let text = session.remove::<String>(LONG_FORM).await.ok().flatten();
        let whole = text.and_then(|text| self.unsealed(&REFUSED, page, &text));
        whole.filter(|whole| whole.at_ms == sealed.at_ms).unwrap_or(sealed)
    }

    /// Opens the cookie of the requested page.
    fn opened(&self, cookie: &FormCookie, request: &Request) -> Option<Sealed> {
        if request.method() != Method::GET {
            return None;
        }
        let text = cookies::brought(request.headers(), cookie.name, is_https(&self.base_url))?;
        let page = request.uri().path_and_query()?.as_str();
        let sealed = self.unsealed(cookie, page, &text)?;
        let age_ms = self.service.clock().now().unix_ms() - sealed.at_ms;
        (i128::from(age_ms) <= cookie.kept.whole_milliseconds()).then_some(sealed)
    }

    /// Opens a form that was sealed for a page.
    fn unsealed(&self, cookie: &FormCookie, page: &str, text: &str) -> Option<Sealed> {
        let about = format!("{}{page}", cookie.prefix);
        serde_json::from_slice(&seal::open(&self.key, &about, text)?).ok()
    }
}

fn seal_form(
    key: &str,
    cookie: &FormCookie,
    sealed: &Sealed,
    page: &str,
    nonce: [u8; NONCE_BYTES],
) -> Option<String> {
    let text = serde_json::to_vec(sealed).ok()?;
    seal::seal(key, &format!("{}{page}", cookie.prefix), &text, nonce)
}

/// A request that shows whether an address leads to this installation: it brings back a form that
/// only this installation can open.
pub struct Knock {
    /// The value of the header `Cookie`.
    pub cookie: String,
    is_https: bool,
}

impl Knock {
    pub const PAGE: &str = "/login";

    /// Makes the request for a `base_url`. `key` seals the forms of the installation.
    pub fn new(
        key: &str,
        base_url: &str,
        now: Timestamp,
        nonce: [u8; NONCE_BYTES],
    ) -> Option<Self> {
        let is_https = is_https(base_url);
        let form = ReturnedForm { function: String::new(), problem: Cause::Failed.into() };
        // The server's clock may be ahead of this one.
        let at_ms = now.plus_ms(CLOCKS_APART_MS).unix_ms();
        let sealed = Sealed { at_ms, account_id: None, is_long: false, form };
        let text = seal_form(key, &REFUSED, &sealed, Self::PAGE, nonce)?;
        let name = cookies::cookie_name(REFUSED.name, is_https);
        Some(Self { cookie: format!("{name}={text}"), is_https })
    }

    /// Returns whether this installation has answered: it has opened the form, so it removes the
    /// cookie.
    pub fn is_answered(&self, headers: &HeaderMap) -> bool {
        let removed = format!("{}=;", cookies::cookie_name(REFUSED.name, self.is_https));
        let mut new = headers.get_all(SET_COOKIE).iter();
        new.any(|cookie| cookie.as_bytes().starts_with(removed.as_bytes()))
    }
}

/// Reads the fields of a posted form, and returns the request unchanged. Returns `None` for other
/// requests, and nothing for a form without a length.
async fn posted(request: Request) -> (Request, Option<Bytes>) {
    if request.method() != Method::POST {
        return (request, None);
    }
    let length = request.headers().get(CONTENT_LENGTH);
    let length = length.and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    if length.is_none_or(|length| length > FORM_BYTES_MAX) {
        return (request, Some(Bytes::new()));
    }
    let (parts, body) = request.into_parts();
    // A body of a known length is read whole, unless the client breaks off.
    let body = to_bytes(body, FORM_BYTES_MAX).await.unwrap_or_default();
    (Request::from_parts(parts, Body::from(body.clone())), Some(body))
}

/// Reads the problem of a refused form from the response, and returns the response unchanged. A
/// header of the response names the server function.
async fn refused(response: Response) -> (Response, Option<ReturnedForm>) {
    let function = response.headers().get(SERVER_FN_ERROR_HEADER);
    let Some(function) = function.and_then(|path| Some(path.to_str().ok()?.to_owned())) else {
        return (response, None);
    };
    let (parts, body) = response.into_parts();
    let body = to_bytes(body, PROBLEM_BYTES_MAX).await.unwrap_or_default();
    let problem = Problem::de(body.clone());
    let response = Response::from_parts(parts, Body::from(body));
    (response, Some(ReturnedForm { function, problem }))
}

/// Returns `Retry-After` if the response refuses a client over a limit.
fn retry_after_of_limit(response: &Response) -> Option<HeaderValue> {
    let limited = response.status() == StatusCode::TOO_MANY_REQUESTS;
    limited.then(|| response.headers().get(RETRY_AFTER).cloned())?
}

/// Refuses a client without scripts that is over a limit. The response has the status and a
/// sentence. The browser then goes on to the form, which shows the sentence too.
fn wait_at_form(led: Response, retry_after: HeaderValue, sentence: String) -> Response {
    let (mut parts, _) = led.into_parts();
    parts.status = StatusCode::TOO_MANY_REQUESTS;
    if let Some(form) = parts.headers.remove(LOCATION)
        && let Ok(form) = form.to_str()
        && let Ok(refresh) = HeaderValue::from_str(&format!("0; url={form}"))
    {
        parts.headers.insert(REFRESH, refresh);
    }
    parts.headers.insert(RETRY_AFTER, retry_after);
    Response::from_parts(parts, Body::from(sentence))
}

fn led_to(location: HeaderValue) -> Response {
    (StatusCode::FOUND, [(LOCATION, location)]).into_response()
}

#[cfg(test)]
mod tests;
