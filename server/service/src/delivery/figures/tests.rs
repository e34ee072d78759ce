use domain::ids::Shard;
use domain::{ApplicationId, Transid};

use super::*;
use crate::WrittenReceipt;
use crate::delivery::Lease;

/// Messages per report, and reports.
const MESSAGES: u64 = 100;
const REPORTS: u64 = 20_000;

fn report(number: u64) -> (Vec<Submitted>, Vec<CarrierReceipt>) {
    let ids = number * MESSAGES..(number + 1) * MESSAGES;
    let now = Instant::now();
    let answer = |id: u64| Submitted {
        id: Transid(id.cast_signed()),
        application_id: ApplicationId(1),
        lease: Lease {
            token: 1,
            shard: Shard::FIRST,
            until: Timestamp::from_unix_ms(0),
            not_after: now,
        },
        segments: 1,
        outcomes: vec![(
            1,
            SubmitOutcome::Accepted { carrier_message_id: Some(format!("id-{id}")) },
        )],
    };
    let receipt = |id: u64| CarrierReceipt {
        message_ids: vec![format!("id-{id}")],
        status: MessageStatus::Delivered,
        error: None,
        user_reference: None,
        number: String::new(),
        sender: String::new(),
        submitted_at: None,
        received_at: None,
        written: WrittenReceipt::default(),
    };
    (ids.clone().map(answer).collect(), ids.map(receipt).collect())
}

/// Only prints the result. Run by `make soak`.
#[test]
#[ignore = "only a release build gives meaningful times"]
#[expect(clippy::print_stdout, reason = "it prints what it measures")]
fn counting_a_message_takes_less_than_a_microsecond() {
    let figures = Figures::default();
    let reports = || (0..REPORTS).map(report);
    let prepared = Instant::now();
    let generated: usize =
        reports().map(|(results, receipts)| results.len() + receipts.len()).sum();
    assert_eq!(generated, 4_000_000);
    let prepared = prepared.elapsed();
    let counted = Instant::now();
    for (results, receipts) in reports() {
        let counts = figures.answers("acme", &results);
        figures.add("acme", &counts);
        let counted = figures.receipts("acme", &receipts);
        let matches = vec![ReceiptMatch::Matched(None); receipts.len()];
        figures.add_receipts("acme", counted, &matches);
    }
    let spent = counted.elapsed().saturating_sub(prepared);
    let all = figures.lock()["acme"].counts;
    assert_eq!(all.get(CarrierEvent::Delivered), MESSAGES * REPORTS);
    let each = spent / u32::try_from(MESSAGES * REPORTS).unwrap();
    let verdict = if each < Duration::from_micros(1) { "met" } else { "MISSED" };
    println!("figures: {each:?} per message with its receipt; {verdict}");
}
