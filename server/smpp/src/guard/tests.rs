use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Context;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream, ReadBuf};
use tokio::time::Instant;

use super::*;
use crate::encode::Role;
use crate::link::Link;
use crate::shared::Shared;
use crate::stream::Stream;
use crate::{
    Address, BindMode, Event, FaultKind, Outcome, Reaction, Settings, State, Submit, Timers,
    UnknownCause,
};

/// A [`Panicking`] stream panics when it reads this byte.
const PANIC: u8 = 0xFF;

struct Panicking(DuplexStream);

impl AsyncRead for Panicking {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.0).poll_read(context, buffer);
        assert_ne!(buffer.filled().first(), Some(&PANIC), "the test makes the stream panic");
        read
    }
}

impl Stream for Panicking {}

impl AsyncWrite for Panicking {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

fn settings() -> Settings {
    Settings {
        address: String::new(),
        backup: None,
        tls: None,
        system_id: "heliograph".to_owned(),
        password: String::new(),
        system_type: String::new(),
        address_range: String::new(),
        bind: BindMode::Transceiver,
        window: 1,
        rate: 0,
        shared_pace: None,
        reaction: Arc::new(|_| Reaction::None),
        timers: Timers::default(),
    }
}

fn submit() -> Submit {
    Submit {
        tag: 1,
        not_after: Instant::now() + Duration::from_secs(20),
        is_secret: false,
        service_type: String::new(),
        source: Address::default(),
        destination: Address::default(),
        esm_class: 0,
        validity_period: None,
        registered_delivery: 0,
        data_coding: 0,
        short_message: Vec::new(),
        sar_msg_ref_num: None,
        sar_total_segments: None,
        sar_segment_seqnum: None,
        message_payload: None,
        user_message_reference: None,
        tlvs: Vec::new(),
    }
}

/// We know of no bytes from a peer that make a link panic, so the stream panics instead.
#[tokio::test]
async fn a_panic_ends_the_link_and_answers_its_submits() {
    let shared = Arc::new(Shared::new(settings()));
    let (ours, mut peer) = tokio::io::duplex(1024);
    let stream = Box::new(Panicking(ours));
    let link = tokio::spawn(Link::new(&shared, 0, Role::Transceiver, stream).run());
    let mut pdu = [0; 1024];
    assert!(peer.read(&mut pdu).await.unwrap() > 0);
    // bind_transceiver_resp, sequence number 1.
    let accepted = b"\0\0\0\x11\x80\0\0\x09\0\0\0\0\0\0\0\x01\0";
    peer.write_all(accepted).await.unwrap();
    while shared.lock().state() != State::Bound {
        tokio::task::yield_now().await;
    }
    shared.lock().queue.push_back(submit());
    shared.wake[0].notify_one();
    assert!(peer.read(&mut pdu).await.unwrap() > 0);
    peer.write_all(&[PANIC]).await.unwrap();
    let ended = link.await.unwrap();
    assert_eq!(ended.error.kind, FaultKind::Panic);
    let cause = UnknownCause::ConnectionLost;
    let outcome = Outcome::Unknown { cause };
    let (events, _) = shared.take_events(9);
    assert_eq!(events, [Event::Answer { tag: 1, outcome }]);
    assert_ne!(shared.lock().state(), State::Bound);
    assert_eq!(shared.lock().in_flight, 0);
}

#[tokio::test]
async fn a_future_that_does_not_panic_returns_its_result() {
    assert_eq!(guarded(async { 7 }).await, Some(7));
}
