use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
use tokio::time::Instant;

use super::*;
use crate::config::ConnectionLimits;
use crate::http::connections::Connections;
use crate::metrics::Metrics;

const SECOND: Duration = Duration::from_secs(1);

/// Returns the server's end, the client's end and the metrics.
async fn pair() -> (Progress<DuplexStream>, DuplexStream, Arc<Metrics>) {
    let limits = ConnectionLimits { all: 1, address: 1, network: 1 };
    let metrics = Arc::new(Metrics::default());
    let connections = Connections::new(limits, Vec::new(), Arc::clone(&metrics));
    let taken = Arc::new(connections).take([192, 0, 2, 1].into()).await;
    let (server, client) = duplex(1024);
    let server = Progress::new(server, Arc::new(taken.unwrap()));
    (server, client, metrics)
}

/// Asserts that a large response is cut after the timeout, and that this is counted.
async fn is_cut(server: &mut Progress<DuplexStream>, metrics: &Metrics) {
    let started = Instant::now();
    let error = server.write_all(&vec![0; 100_000]).await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    assert_eq!(started.elapsed().as_secs(), WRITE_TIMEOUT.as_secs());
    let text = metrics.render(None);
    assert!(text.contains("limit=\"unread\"} 1\n"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn who_reads_nothing_is_cut_off() {
    let (mut server, _client, metrics) = pair().await;
    is_cut(&mut server, &metrics).await;
}

#[tokio::test(start_paused = true)]
async fn who_reads_a_byte_now_and_then_is_cut_off() {
    let (mut server, mut client, metrics) = pair().await;
    tokio::spawn(async move {
        while client.read_u8().await.is_ok() {
            tokio::time::sleep(10 * SECOND).await;
        }
    });
    is_cut(&mut server, &metrics).await;
}

#[tokio::test(start_paused = true)]
async fn who_reads_slowly_gets_the_whole() {
    let (mut server, mut client, _) = pair().await;
    let reading = tokio::spawn(async move {
        let mut read = 0;
        let mut room = vec![0; WRITE_BYTES_MIN];
        while client.read_exact(&mut room).await.is_ok() {
            read += room.len();
            tokio::time::sleep(20 * SECOND).await;
        }
        read
    });
    let whole = vec![0; 20 * WRITE_BYTES_MIN];
    server.write_all(&whole).await.unwrap();
    drop(server);
    assert_eq!(reading.await.unwrap(), whole.len());
}

#[tokio::test(start_paused = true)]
async fn each_answer_has_its_own_time() {
    let (mut server, mut client, metrics) = pair().await;
    for _ in 0..4 {
        // More than the pipe can hold, but too little to reset the timeout.
        let (written, read) = tokio::join!(server.write_all(&[0; 2000]), async {
            tokio::time::sleep(20 * SECOND).await;
            client.read_exact(&mut [0; 2000]).await
        });
        written.unwrap();
        read.unwrap();
        server.flush().await.unwrap();
        tokio::time::sleep(20 * SECOND).await;
    }
    is_cut(&mut server, &metrics).await;
}
