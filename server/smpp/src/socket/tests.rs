use std::future::poll_fn;
use std::time::Duration;

use tokio::io::{AsyncReadExt, DuplexStream};

use super::*;

impl Stream for DuplexStream {}

/// Returns a socket with these submits to be written, over a stream that holds `width` bytes.
fn filled(width: usize, submits: [(u32, &str, Instant); 3]) -> (Socket, DuplexStream) {
    let (ours, peer) = tokio::io::duplex(width);
    let mut socket = Socket::new(Box::new(ours), false);
    for (sequence, text, not_after) in submits {
        socket.outbox.append_submit(sequence, not_after, |out| {
            out.extend_from_slice(text.as_bytes());
        });
    }
    (socket, peer)
}

async fn until_stalled(socket: &mut Socket) {
    while socket.stalled().is_none() {
        poll_fn(|context| socket.poll(context, true)).await.unwrap();
    }
}

/// Through the public API, the result would depend on when exactly the peer reads.
#[tokio::test]
async fn a_socket_without_bytes_to_write_is_not_stalled() {
    let later = Instant::now() + Duration::from_mins(1);
    let submits = [(1, "aaa", later), (2, "bbb", later), (3, "ccc", later)];
    let (mut socket, _peer) = filled(3, submits);
    until_stalled(&mut socket).await;
    assert_eq!(socket.take_back(|_| true), [2, 3]);
    assert_eq!(socket.stalled(), None);
    socket.outbox.append(|out| out.extend_from_slice(b"ccc"));
    assert_eq!(socket.stalled(), None);
}

/// Nothing checks the deadline between the stall and the next write, as if the process had been
/// suspended.
#[tokio::test]
async fn after_its_time_only_a_submit_that_was_begun_is_written() {
    let soon = Instant::now() + Duration::from_millis(200);
    let later = soon + Duration::from_mins(1);
    let submits = [(1, "aaa", soon), (2, "bbb", soon), (3, "ccc", later)];
    let (mut socket, mut peer) = filled(2, submits);
    until_stalled(&mut socket).await;
    assert!(socket.overdue.is_empty());
    std::thread::sleep(soon.duration_since(Instant::now()) + Duration::from_millis(1));
    let mut written = [0; 6];
    let writing = async {
        loop {
            poll_fn(|context| socket.poll(context, true)).await.unwrap();
        }
    };
    tokio::select! {
        () = writing => {}
        read = peer.read_exact(&mut written) => assert_eq!(read.unwrap(), 6),
    }
    assert_eq!(&written, b"aaaccc");
    assert_eq!(socket.overdue, [2]);
}
