//! The text counter for browsers without scripts. They post the text, and the response is the page
//! with the count.

use app::counter::TypedText;
use axum::Form;
use axum::body::Body;
use axum::extract::{FromRequest as _, Request};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};

/// Reads the posted form and passes it to the page.
pub async fn read(request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    let posted = Request::from_parts(parts.clone(), body);
    let Form(mut typed) = match Form::<TypedText>::from_request(posted, &()).await {
        Ok(form) => form,
        Err(refused) => return refused.into_response(),
    };
    // Forms end a line with CR LF. Scripts see only the LF.
    typed.message = typed.message.replace("\r\n", "\n");
    let mut request = Request::from_parts(parts, Body::empty());
    request.extensions_mut().insert(typed);
    next.run(request).await
}
