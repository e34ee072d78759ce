//! Why a request got no answer, in sentences for the customer.

use std::error::Error;
use std::io;

use domain::printable::printable;
use tokio_rustls::rustls;

use super::resolver::ResolveFault;

/// The maximum length of a quoted error. The endpoint influences some, for example by the names in
/// its certificate.
const QUOTED_CHARS_MAX: usize = 200;

/// Returns the sentence for a request that failed. It never contains the URL, whose path or query
/// may be a secret: only the outermost error has it, and that one is never quoted.
pub fn sentence(error: &reqwest::Error) -> String {
    let causes = || std::iter::successors(error.source(), |&cause| cause.source());
    if let Some(fault) = causes().find_map(|cause| cause.downcast_ref::<ResolveFault>()) {
        return fault.to_string();
    }
    if error.is_timeout() {
        return if error.is_connect() {
            "The host didn't accept a connection within 10 seconds.".to_owned()
        } else {
            "The endpoint didn't answer within 15 seconds.".to_owned()
        };
    }
    // The innermost error says most.
    let words = causes().last().map(ToString::to_string).unwrap_or_default();
    let words = printable(&words).chars().take(QUOTED_CHARS_MAX).collect::<String>();
    let hyper = causes().find_map(|cause| cause.downcast_ref::<hyper::Error>());
    if causes().any(is_tls) {
        format!("The TLS connection failed: {words}.")
    } else if error.is_connect() {
        format!("The connection failed: {words}.")
    } else if hyper.is_some_and(hyper::Error::is_parse) {
        format!("The answer isn't valid HTTP: {words}.")
    } else {
        format!("The connection was lost before the answer: {words}.")
    }
}

/// rustls's errors come inside I/O errors, which don't list them as their source.
fn is_tls(cause: &(dyn Error + 'static)) -> bool {
    let io = cause.downcast_ref::<io::Error>();
    cause.is::<rustls::Error>()
        || io.and_then(io::Error::get_ref).is_some_and(|inner| is_tls(inner))
}
