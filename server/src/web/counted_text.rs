//! A text that a browser without scripts posts to be counted: the answer is the page with the count.

use app::counter::TypedText;
use axum::Form;
use axum::body::Body;
use axum::extract::{FromRequest as _, Request};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};

/// Reads the posted form, for the page that is rendered.
pub async fn read(request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    let posted = Request::from_parts(parts.clone(), body);
    let Form(mut typed) = match Form::<TypedText>::from_request(posted, &()).await {
        Ok(form) => form,
        Err(refused) => return refused.into_response(),
    };
    // Forms have CR and LF at the end of a line, where scripts see an LF alone.
    typed.message = typed.message.replace("\r\n", "\n");
    let mut request = Request::from_parts(parts, Body::empty());
    request.extensions_mut().insert(typed);
    next.run(request).await
}
