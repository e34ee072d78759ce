//! Measures submits per second, and processor time per submit, against the tests' SMSC on this
//! machine. The session and the SMSC run on separate threads, so that the session's processor time
//! can be measured separately.

#![expect(
    clippy::unwrap_used,
    reason = "clippy.toml allows it in test functions, and helpers of tests fail no other way"
)]

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use smpp::{Address, BindMode, Connection, Event, Outcome, Reaction, Settings, Submit, Timers};
use testing::smsc::Smsc;
use tokio::time::Instant;

const COUNT: u64 = 500_000;

fn main() {
    for window in [10, 100, 1000] {
        let (sender, receiver) = std::sync::mpsc::channel();
        let smsc = std::thread::spawn(move || {
            block_on(async {
                let smsc = Smsc::start().await;
                sender.send(smsc.address()).unwrap();
                smsc.bound().await.serve().await
            })
        });
        let address = receiver.recv().unwrap();
        block_on(measure(address, window));
        assert_eq!(smsc.join().unwrap() as u64, COUNT);
    }
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().build().unwrap().block_on(work)
}

async fn measure(address: String, window: usize) {
    let settings = Settings {
        address,
        backup: None,
        tls: None,
        system_id: "bench".to_owned(),
        password: String::new(),
        system_type: String::new(),
        address_range: String::new(),
        bind: BindMode::Transceiver,
        window,
        rate: 0,
        shared_pace: None,
        reaction: Arc::new(|_| Reaction::None),
        timers: Timers::default(),
    };
    let (connection, mut events) = Connection::open(settings, 1);
    connection.until_free().await;
    let (began, used) = (Instant::now(), processor_time());
    let (mut sent, mut accepted) = (0, 0);
    while accepted < COUNT {
        let count = (connection.free() as u64).min(COUNT - sent);
        connection.submit((sent..sent + count).map(submit).collect());
        sent += count;
        for event in events.next().await.unwrap() {
            let answer = matches!(event, Event::Answer { outcome: Outcome::Accepted { .. }, .. });
            assert!(answer, "{event:?}");
            accepted += 1;
        }
    }
    let (elapsed, used) = (began.elapsed(), processor_time().saturating_sub(used));
    connection.close().await;
    let rate = 1e6 * f64::from(u32::try_from(COUNT).unwrap()) / micros(elapsed);
    let each = micros(used) / f64::from(u32::try_from(COUNT).unwrap());
    println!("window {window:>4}: {rate:>8.0} submits/s, {each:.2} us of processor time each");
}

fn submit(tag: u64) -> Submit {
    Submit {
        tag,
        not_after: Instant::now() + Duration::from_mins(1),
        is_secret: false,
        service_type: String::new(),
        source: Address { ton: 5, npi: 0, digits: "Heliograph".to_owned() },
        destination: Address { ton: 1, npi: 1, digits: "491701234567".to_owned() },
        esm_class: 0,
        validity_period: None,
        registered_delivery: 1,
        data_coding: 0,
        short_message: vec![b'x'; 100],
        sar_msg_ref_num: None,
        sar_total_segments: None,
        sar_segment_seqnum: None,
        message_payload: None,
        user_message_reference: None,
        tlvs: Vec::new(),
    }
}

/// Returns the processor time of this thread. The kernel counts it in nanoseconds.
fn processor_time() -> Duration {
    let account = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(account.split(' ').next().unwrap().parse().unwrap())
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}
