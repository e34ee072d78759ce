//! How the browser calls server functions.

use futures_util::{Sink, Stream};
use leptos::server_fn::Bytes;
use leptos::server_fn::client::Client;
use leptos::server_fn::client::browser::BrowserClient;
use leptos::server_fn::error::SERVER_FN_ERROR_HEADER;
use leptos::server_fn::request::browser::BrowserRequest;
use leptos::server_fn::response::ClientRes;
use leptos::server_fn::response::browser::BrowserResponse;

use crate::problem::Problem;

/// `fetch`, with refusals told by a header instead of the HTTP status: a refusal (a wrong password, a name
/// that is taken) is an answer like any other, while browsers report every status from 400 up as an error
/// of the page.
pub struct PortalClient;

/// An answer to [`PortalClient`].
pub struct Answer(BrowserResponse);

/// What [`Answer`] says for a refusal: server functions read any status from 400 up as an error.
const STATUS_OF_REFUSALS: u16 = 422;

impl Client<Problem> for PortalClient {
    type Request = BrowserRequest;
    type Response = Answer;

    async fn send(request: BrowserRequest) -> Result<Answer, Problem> {
        <BrowserClient as Client<Problem>>::send(request)
            .await
            .map(Answer)
    }

    fn open_websocket(
        path: &str,
    ) -> impl Future<
        Output = Result<
            (
                impl Stream<Item = Result<Bytes, Bytes>> + Send + 'static,
                impl Sink<Bytes> + Send + 'static,
            ),
            Problem,
        >,
    > + Send {
        <BrowserClient as Client<Problem>>::open_websocket(path)
    }

    fn spawn(future: impl Future<Output = ()> + Send + 'static) {
        <BrowserClient as Client<Problem>>::spawn(future);
    }
}

impl ClientRes<Problem> for Answer {
    fn try_into_string(self) -> impl Future<Output = Result<String, Problem>> + Send {
        ClientRes::<Problem>::try_into_string(self.0)
    }

    fn try_into_bytes(self) -> impl Future<Output = Result<Bytes, Problem>> + Send {
        ClientRes::<Problem>::try_into_bytes(self.0)
    }

    fn try_into_stream(
        self,
    ) -> Result<impl Stream<Item = Result<Bytes, Bytes>> + Send + Sync + 'static, Problem> {
        ClientRes::<Problem>::try_into_stream(self.0)
    }

    fn status(&self) -> u16 {
        if self
            .0
            .generate_headers()
            .contains_key(SERVER_FN_ERROR_HEADER)
        {
            STATUS_OF_REFUSALS
        } else {
            ClientRes::<Problem>::status(&self.0)
        }
    }

    fn status_text(&self) -> String {
        ClientRes::<Problem>::status_text(&self.0)
    }

    fn location(&self) -> String {
        ClientRes::<Problem>::location(&self.0)
    }

    fn has_redirect(&self) -> bool {
        ClientRes::<Problem>::has_redirect(&self.0)
    }
}
