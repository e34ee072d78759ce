//! Records reach the browser exactly as the server sent them.

use domain::ledger::TransferKind;
use domain::opt_out::Command;
use domain::records::{
    AccountRecord, ApplicationRecord, ChargeRecord, MessageDetail, MessageRecord, Paged, PriceList,
    SenderRequestRecord, StatementLine, StatusCounts, TimelineEntry,
};
use domain::{
    ApplicationStatus, BatchId, Category, InboundId, InboundRecord, Kind, MessageStatus, Money,
    OptOutRecord, OptOutSource, Prices, Reference, SenderStatus, Timestamp, Transid,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

fn arrives<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(sent: &T) {
    let json = serde_json::to_string(sent).unwrap_or_else(|error| panic!("{sent:?}: {error}"));
    let received: T = serde_json::from_str(&json).unwrap_or_else(|error| panic!("{json}: {error}"));
    assert_eq!(&received, sent);
}

#[test]
fn transfer_kinds_have_words_and_codes() {
    assert_eq!(
        TransferKind::ALL.map(TransferKind::as_str),
        ["deposit", "unmatched", "charge", "settle", "release", "return"]
    );
    for (code, kind) in (0..).zip(TransferKind::ALL) {
        assert_eq!(TransferKind::parse(kind.as_str()), Some(kind));
        assert_eq!(kind.code(), code);
        assert_eq!(TransferKind::from_code(code), Some(kind));
        arrives(&kind);
    }
    assert_eq!(TransferKind::parse("refund"), None);
    for code in [-1, 6, i64::MIN, i64::MAX] {
        assert_eq!(TransferKind::from_code(code), None);
    }
}

#[test]
fn applications_arrive() {
    let at = Timestamp::from_unix_ms(1_795_237_471_123);
    let request = SenderRequestRecord {
        id: 7,
        reference: Reference::from_number(42),
        name: "Shop".to_owned(),
        status: SenderStatus::Rejected,
        reason: Some("Belongs to someone else; “quoted”, <b>, \u{1F600}".to_owned()),
        requested_at: at,
        decided_at: None,
    };
    let application = ApplicationRecord {
        reference: Reference::from_number(42),
        name: Some("Shop".to_owned()),
        category: Category::Sms,
        status: ApplicationStatus::Suspended,
        sender_name: None,
        sender_state: domain::SenderState::Rejected,
        requested_sender: Some(request),
        balance: Money::from_micros(i64::MAX),
        test_balance: Money::ZERO,
        created_at: at,
        activation_requested_at: Some(at),
        lost_answer: domain::LostAnswer::Resend,
        suspend_reason: Some(String::new()),
        low_balance: None,
        batch_mails_since: Some(at),
        account_closed: false,
        account_disabled: false,
        email: "name@example.org".to_owned(),
    };
    arrives(&Paged {
        items: vec![application.clone(), application],
        next: Some("opaque".to_owned()),
    });
    arrives(&AccountRecord {
        id: i64::MAX,
        email: String::new(),
        staff: true,
        password_changed_at: at,
        confirmed_at: None,
        second_factor: true,
        theme: domain::Theme::Dark,
        time_zone: Some("Europe/Berlin".to_owned()),
        closed: true,
    });
}

#[test]
fn messages_arrive() {
    let at = Timestamp::from_unix_ms(0);
    for status in MessageStatus::ALL {
        let record = MessageRecord {
            transid: Transid(i64::MAX),
            requestid: Some("\u{7f}\"\\\n".to_owned()),
            batchid: Some(BatchId(0)),
            number: "58000000".to_owned(),
            kind: Kind::Local,
            sender: None,
            message: "line\r\nline \u{2028} 😀".to_owned(),
            status,
            pages: 10,
            segments: 24,
            cost: Money::from_micros(1),
            released: Money::ZERO,
            error: None,
            created_at: at,
            send_at: Some(at),
            submitted_at: Some(at),
            final_at: None,
            test: true,
        };
        arrives(&MessageDetail {
            record,
            timeline: vec![TimelineEntry { status, at, detail: None }],
            charge: ChargeRecord {
                rule: "local_8_digits".to_owned(),
                pages: 10,
                unit_price: Money::from_micros(50_000),
                charged: Money::from_micros(500_000),
                released: Money::ZERO,
                why: "Ten pages.".to_owned(),
            },
        });
    }
    arrives(&StatementLine {
        id: 1,
        at,
        kind: TransferKind::Deposit,
        amount: Money::from_micros(1),
        balance_after: Money::from_micros(1),
        subject: "bank-1".to_owned(),
    });
    let prices = Prices { local: Money::from_micros(1), international: Money::from_micros(2) };
    arrives(&PriceList { currency: "USD".to_owned(), prices });
}

#[test]
fn counts_are_added_and_cancelled_messages_are_not_rated() {
    let mut counts = StatusCounts::default();
    *counts.get_mut(MessageStatus::Queued) = 5;
    assert_eq!((counts.total(), counts.completed()), (5, 0));
    let more = [
        (MessageStatus::Delivered, 2),
        (MessageStatus::Failed, 1),
        (MessageStatus::Cancelled, 1),
        (MessageStatus::Submitted, 4),
    ];
    let more =
        more.into_iter().fold(StatusCounts::default(), |all, (status, n)| all.with(status, n));
    counts.add(&more);
    assert_eq!((counts.total(), counts.completed(), counts.rated()), (13, 4, 3));
}

#[test]
fn inbound_messages_and_opt_outs_arrive() {
    let at = Timestamp::from_unix_ms(1_795_237_471_123);
    let record = InboundRecord {
        inboundid: InboundId(i64::MAX),
        number: "26658000000".to_owned(),
        recipient: "12345".to_owned(),
        message: "line\r\nline […] \u{fffd} 😀".to_owned(),
        segments: 255,
        keyword: Some("NEWS".to_owned()),
        optout: Some(Command::Stop),
        test: true,
        received_at: at,
    };
    arrives(&record);
    arrives(&InboundRecord { keyword: None, optout: None, ..record });
    for source in OptOutSource::ALL {
        for number in [Some("26658000000".to_owned()), None] {
            arrives(&OptOutRecord { number, source, created_at: at });
        }
    }
}
