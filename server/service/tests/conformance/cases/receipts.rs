//! Matching a carrier's receipts to messages.

use domain::MessageStatus::{self, Delivered, Failed, Submitted, Unknown};
use domain::carrier_figures::CarrierEvent;
use domain::records::MessageDetail;
use domain::support::ReceiptOutcome::{
    AcceptedWithoutId, Intermediate, Matched, Refused, Throttled, UnknownState, Unmatched,
};
use domain::support::{ReceiptKind, SuggestedForm};
use domain::{DeliveryError, MessageIdForm, Timestamp};
use service::{
    CarrierReceipt, Leases, NamedStates, RawReceipt, ReceiptFilter, ReceiptMatch, SubmitOutcome,
    WrittenReceipt, user_reference,
};
use sqlx::{Executor as _, Row as _};

use crate::database::Backend;
use crate::network::{lost, network, taken_as};
use crate::sending::{Handed, Sending, receipt};
use crate::world::HOUR_MS;

on_each_backend![
    a_receipt_that_comes_before_the_answer_waits_for_it,
    receipts_that_come_twice_late_or_for_nothing_change_nothing,
    an_id_that_a_carrier_uses_again_means_the_younger_message,
    a_receipt_without_a_known_id_is_matched_if_exactly_one_message_fits,
    a_receipt_of_before_the_submit_never_matches_by_number,
    a_receipt_that_may_be_for_an_answered_message_matches_neither,
    a_receipt_of_before_the_message_does_not_match_its_id,
    a_name_of_more_than_255_characters_is_dropped,
    unmatched_receipts_match_after_the_format_of_ids_was_corrected,
    unmatched_receipts_are_compared_once_under_the_same_settings,
    a_receipt_matches_by_its_reference_once_the_lease_has_ended,
    receipts_apply_once_the_settings_name_their_state,
    raw_receipts_are_deleted_after_their_days,
    answers_hide_no_receipts_and_equal_ones_are_kept_once_a_second,
    a_receipt_without_an_id_is_labelled_if_it_is_alone,
];

async fn a_receipt_that_comes_before_the_answer_waits_for_it(backend: Backend) {
    let sending = Sending::by_acme(backend).await;
    let handed = sending.submitted().await;
    assert_eq!(sending.receive(receipt("c1", Delivered)).await, ReceiptMatch::Unmatched);
    sending.assert_status(handed.id(), MessageStatus::Sending).await;
    let counts =
        || [CarrierEvent::Unmatched, CarrierEvent::Delivered].map(|event| sending.count(event));
    assert_eq!(counts(), [1, 0], "a receipt without a message isn't part of the delivery rate");
    sending.answer(&handed, taken_as("c1")).await;
    sending.assert_status(handed.id(), Delivered).await;
    assert_eq!(counts(), [1, 1]);
    let carriers = sending.world.service.delivery().carriers().await.unwrap();
    let acme = carriers.iter().find(|carrier| carrier.name == "acme").unwrap();
    assert_eq!((acme.receipts_unmatched, acme.receipts_matched), (1, 1));
    sending.assert_sound().await;
}

async fn receipts_that_come_twice_late_or_for_nothing_change_nothing(backend: Backend) {
    let sending = Sending::by_acme(backend).await;
    let handed = sending.submitted().await;
    sending.answer(&handed, taken_as("c1")).await;
    sending.receive(receipt("c1", Delivered)).await;
    sending.receive(receipt("c1", Delivered)).await;
    let steps = |detail: &MessageDetail| detail.timeline.len();
    let before = steps(&sending.detail(handed.id()).await);
    sending.receive(receipt("nobody", Delivered)).await;
    sending.receive(receipt("c1", Failed)).await;
    let after = sending.detail(handed.id()).await;
    // A receipt that contradicts the first one goes into the timeline.
    assert_eq!(steps(&after), before + 1);
    assert_eq!(after.record.status, Delivered);
    sending.world.pass(8 * 24 * HOUR_MS);
    sending.world.service.delivery().expire().await.unwrap();
    sending.world.service.delivery().forget_segments().await.unwrap();
    sending.receive(receipt("c1", Failed)).await;
    assert_eq!(steps(&sending.detail(handed.id()).await), before + 1);
    sending.assert_sound().await;
}

async fn an_id_that_a_carrier_uses_again_means_the_younger_message(backend: Backend) {
    let sending = Sending::by_acme(backend).await;
    let first = sending.submitted().await;
    sending.answer(&first, taken_as("c1")).await;
    let second = sending.submitted().await;
    sending.answer(&second, taken_as("c1")).await;
    sending.receive(receipt("c1", Delivered)).await;
    sending.assert_status(first.id(), Submitted).await;
    sending.assert_status(second.id(), Delivered).await;
}

async fn a_receipt_without_a_known_id_is_matched_if_exactly_one_message_fits(backend: Backend) {
    let sending = Sending::by_acme(backend).await;
    let unnamed = |handed: &Handed, submitted_at: Timestamp| CarrierReceipt {
        message_ids: Vec::new(),
        number: handed.message.address.clone(),
        sender: handed.message.sender.clone(),
        submitted_at: Some(submitted_at),
        ..receipt("", Delivered)
    };
    let first = sending.submitted().await;
    sending.answer(&first, lost()).await;
    let now = sending.world.now();
    // One is too late, and one is for another number.
    let late = unnamed(&first, now.plus_ms(11 * 60_000));
    sending.receive(late).await;
    let other = CarrierReceipt { number: "26687654321".to_owned(), ..unnamed(&first, now) };
    sending.receive(other).await;
    sending.assert_status(first.id(), Unknown).await;
    // Two messages fit, so the receipt matches neither.
    let second = sending.submitted().await;
    sending.answer(&second, lost()).await;
    sending.receive(unnamed(&first, now)).await;
    sending.assert_status(first.id(), Unknown).await;
    let echoed = CarrierReceipt {
        user_reference: Some(user_reference(second.id(), 1)),
        ..unnamed(&second, now)
    };
    assert_eq!(sending.receive(echoed).await, ReceiptMatch::Matched(Some(second.id())));
    sending.assert_status(second.id(), Delivered).await;
    let early = unnamed(&first, now.plus_ms(9 * 60_000));
    sending.receive(early).await;
    sending.assert_status(first.id(), Delivered).await;
    sending.assert_sound().await;
}

/// A receipt for a message to the same number, with an ID that matches nothing.
fn foreign(handed: &Handed, id: &str, submitted_at: Timestamp) -> CarrierReceipt {
    CarrierReceipt {
        number: handed.message.address.clone(),
        sender: handed.message.sender.clone(),
        submitted_at: Some(submitted_at),
        ..receipt(id, Delivered)
    }
}

/// The earlier message to the number is delivered. Its carrier repeats its receipt with the ID in
/// another format, and the process dies while it submits the later message.
async fn a_receipt_of_before_the_submit_never_matches_by_number(backend: Backend) {
    let sending = Sending::by_acme(backend).await;
    let first = sending.submitted().await;
    sending.answer(&first, taken_as("000AB")).await;
    sending.receive(receipt("000AB", Delivered)).await;
    let earlier = sending.world.now();
    sending.receive(foreign(&first, "AB", earlier)).await;
    sending.world.pass(5 * 60_000);
    let second = sending.submitted().await;
    let submitted_at = sending.world.now();
    sending.world.pass(61_000);
    let delivery = sending.world.service.delivery();
    delivery.end_leases(Leases::Over).await.unwrap();
    assert_eq!(delivery.match_waiting().await.unwrap(), 0);
    sending.assert_status(second.id(), Unknown).await;
    // Nor does one that comes now and says that its message was submitted earlier.
    sending.receive(foreign(&first, "0AB", earlier)).await;
    sending.assert_status(second.id(), Unknown).await;
    // The carrier's clock is a minute behind ours.
    sending.receive(foreign(&second, "CD", submitted_at.plus_ms(-60_000))).await;
    sending.assert_status(second.id(), Delivered).await;
    sending.assert_sound().await;
}

/// Two messages to a number are submitted at the same time, and only one gets an answer.
async fn a_receipt_that_may_be_for_an_answered_message_matches_neither(backend: Backend) {
    let sending = Sending::by_acme(backend).await;
    let (answered, open) = (sending.submitted().await, sending.submitted().await);
    sending.answer(&answered, taken_as("000AB")).await;
    sending.answer(&open, lost()).await;
    let now = sending.world.now();
    sending.receive(foreign(&answered, "AB", now)).await;
    sending.assert_status(open.id(), Unknown).await;
    // Once the other message has its receipt, the next one can only be for this message.
    sending.receive(receipt("000AB", Delivered)).await;
    sending.receive(foreign(&open, "AC", now)).await;
    sending.assert_status(open.id(), Delivered).await;
    sending.assert_sound().await;
}

/// The carrier uses an ID again.
async fn a_receipt_of_before_the_message_does_not_match_its_id(backend: Backend) {
    let sending = Sending::by_acme(backend).await;
    sending.receive(receipt("c1", Failed)).await;
    sending.world.pass(10 * 60_000);
    let handed = sending.submitted().await;
    sending.answer(&handed, taken_as("c1")).await;
    sending.assert_status(handed.id(), Submitted).await;
    sending.world.service.delivery().match_waiting().await.unwrap();
    sending.assert_status(handed.id(), Submitted).await;
    sending.receive(receipt("c1", Delivered)).await;
    sending.assert_status(handed.id(), Delivered).await;
    sending.assert_sound().await;
}

/// PostgreSQL's index can't store such an ID. The whole transaction would fail.
async fn a_name_of_more_than_255_characters_is_dropped(backend: Backend) {
    // Varied characters, because PostgreSQL compresses repeated ones.
    let of = |chars: u32| -> String {
        let letter = |n: u32| char::from_u32(0x1_0000 + n.wrapping_mul(7919) % 60_000);
        (0..chars).filter_map(letter).collect()
    };
    let (longest, too_long) = (of(255), of(3000));
    let sending = Sending::by_acme(backend).await;
    let handed = sending.submitted().await;
    sending.receive(receipt(&too_long, Delivered)).await;
    sending.answer(&handed, taken_as(&longest)).await;
    sending.assert_status(handed.id(), Submitted).await;
    sending.receive(receipt(&of(256), Failed)).await;
    sending.receive(receipt(&longest, Delivered)).await;
    sending.assert_status(handed.id(), Delivered).await;
    // A carrier that returns such an ID has accepted the message all the same.
    let unnamed = sending.submitted().await;
    sending.answer(&unnamed, taken_as(&too_long)).await;
    sending.assert_status(unnamed.id(), Submitted).await;
    let carriers = sending.world.service.delivery().carriers().await.unwrap();
    assert!(carriers.iter().all(|carrier| carrier.receipts_unmatched == 0));
    sending.assert_sound().await;
}

async fn unmatched_receipts_match_after_the_format_of_ids_was_corrected(backend: Backend) {
    let mut sending = Sending::by_acme(backend).await;
    let (right, wrong) = (sending.submitted().await, sending.submitted().await);
    sending.answer(&right, taken_as("0000AB00")).await;
    sending.answer(&wrong, taken_as("0000AB01")).await;
    let written = |id: &str, number: &str| CarrierReceipt {
        number: number.to_owned(),
        written: WrittenReceipt { text_id: Some(id.to_owned()), ..WrittenReceipt::default() },
        ..receipt(id, Delivered)
    };
    let address = right.message.address.clone();
    sending.receive(written("43776", &address)).await;
    // The ID fits, but the number doesn't.
    sending.receive(written("43777", "26600000000")).await;
    let service = &sending.world.service;
    assert_eq!(service.delivery().match_waiting().await.unwrap(), 0);
    let found = service.delivery().carrier_receipts("acme", &ReceiptFilter::Unmatched).await;
    let found = found.unwrap();
    let suggested = [SuggestedForm { form: MessageIdForm::HexToDecimal, receipts: 1 }];
    assert_eq!((found.unmatched, &found.suggestions[..]), (2, &suggested[..]));
    let candidate = &found.receipts[1].candidates[0];
    assert_eq!((candidate.transid, candidate.is_to_number), (right.id(), true));
    let candidate = &found.receipts[0].candidates[0];
    assert_eq!((candidate.transid, candidate.is_to_number), (wrong.id(), false));
    let mut corrected = network(&[("acme", 1, None)]);
    for carrier in &mut corrected.carriers {
        carrier.message_id = Some(MessageIdForm::HexToDecimal);
    }
    sending.world.set_network(corrected);
    let sending = sending.reopen().await;
    let delivery = sending.world.service.delivery();
    assert_eq!(delivery.match_waiting().await.unwrap(), 1);
    assert_eq!(delivery.match_waiting().await.unwrap(), 0);
    sending.assert_status(right.id(), Delivered).await;
    sending.assert_status(wrong.id(), Submitted).await;
    let carriers = delivery.carriers().await.unwrap();
    let acme = carriers.iter().find(|carrier| carrier.name == "acme").unwrap();
    assert_eq!((acme.receipts_unmatched, acme.receipts_matched), (2, 1));
    sending.assert_sound().await;
}

/// A process with other settings may have compared them since. The two don't do so in turn.
async fn unmatched_receipts_are_compared_once_under_the_same_settings(backend: Backend) {
    let sending = Sending::by_acme(backend).await;
    let delivery = sending.world.service.delivery();
    sending.receive(receipt("c1", Delivered)).await;
    let mut conn = sending.world.database.connect().await;
    let mut forms = Vec::new();
    for _ in 0..2 {
        conn.execute("UPDATE unmatched_receipts SET form = 'hex'").await.unwrap();
        assert_eq!(delivery.match_waiting().await.unwrap(), 0);
        let form = conn.fetch_one("SELECT form FROM unmatched_receipts").await.unwrap();
        forms.push(form.get::<String, _>(0));
    }
    assert_eq!(forms, ["text", "hex"]);
}

/// The process that submitted the message died before it stored the segment.
async fn a_receipt_matches_by_its_reference_once_the_lease_has_ended(backend: Backend) {
    let sending = Sending::by_acme(backend).await;
    let handed = sending.submitted().await;
    for id in ["c1", ""] {
        let text_id = Some(id.to_owned()).filter(|id| !id.is_empty());
        let echoed = CarrierReceipt {
            message_ids: text_id.iter().cloned().collect(),
            written: WrittenReceipt { text_id, ..WrittenReceipt::default() },
            user_reference: Some(user_reference(handed.id(), 1)),
            number: handed.message.address.clone(),
            ..receipt("", Delivered)
        };
        sending.receive(echoed).await;
    }
    let delivery = sending.world.service.delivery();
    let of_number = |text_id: Option<&str>| RawReceipt {
        text_id: text_id.map(str::to_owned),
        number: handed.message.address.clone(),
        ..raw("", ReceiptKind::Final, "DELIVRD")
    };
    let other = sending.send().await;
    // Only the first one is known to be this message's.
    sending.keep_raw(of_number(Some("c1"))).await;
    sending.keep_raw(RawReceipt { message_id: Some(other), ..of_number(Some("c1")) }).await;
    sending.keep_raw(of_number(Some("c2"))).await;
    assert_eq!(delivery.match_waiting().await.unwrap(), 0);
    sending.assert_status(handed.id(), MessageStatus::Sending).await;
    sending.world.pass(61_000);
    delivery.end_leases(Leases::Over).await.unwrap();
    sending.assert_status(handed.id(), Unknown).await;
    assert_eq!(delivery.match_waiting().await.unwrap(), 1);
    sending.assert_status(handed.id(), Delivered).await;
    // Staff see the message, although none has this ID.
    let found = delivery.carrier_receipts("acme", &ReceiptFilter::All).await.unwrap();
    let found: Vec<_> = found.receipts.iter().map(|receipt| receipt.transid).collect();
    assert_eq!(found, [None, Some(other), Some(handed.id())]);
    sending.assert_sound().await;
}

/// Nothing tells which of two raw receipts without an ID is the message's.
async fn a_receipt_without_an_id_is_labelled_if_it_is_alone(backend: Backend) {
    let sending = Sending::by_acme(backend).await;
    let delivery = sending.world.service.delivery();
    let mut labels: Vec<Vec<bool>> = Vec::new();
    for count in [1, 2] {
        let handed = sending.submitted().await;
        let number = handed.message.address.clone();
        let echoed = CarrierReceipt {
            message_ids: Vec::new(),
            user_reference: Some(user_reference(handed.id(), 1)),
            number: number.clone(),
            ..receipt("", Delivered)
        };
        sending.receive(echoed).await;
        for _ in 0..count {
            let number = number.clone();
            let without = raw("", ReceiptKind::Final, "DELIVRD");
            sending.keep_raw(RawReceipt { text_id: None, number, ..without }).await;
        }
        sending.world.pass(61_000);
        delivery.end_leases(Leases::Over).await.unwrap();
        assert_eq!(delivery.match_waiting().await.unwrap(), 1);
        let found = delivery.carrier_receipts("acme", &ReceiptFilter::All).await.unwrap();
        let newest = found.receipts[..count].iter();
        labels.push(newest.map(|receipt| receipt.transid == Some(handed.id())).collect());
    }
    assert_eq!(labels, [vec![true], vec![false, false]]);
}

/// A raw receipt of acme.
fn raw(id: &str, kind: ReceiptKind, state: &str) -> RawReceipt {
    RawReceipt {
        kind,
        text_id: Some(id.to_owned()),
        parameter_id: None,
        number: "26657000001".to_owned(),
        state: state.to_owned(),
        error: None,
        raw: format!("id:{id} stat:{state}"),
        message_id: None,
    }
}

async fn receipts_apply_once_the_settings_name_their_state(backend: Backend) {
    let sending = Sending::by_acme(backend).await;
    let (failed, open) = (sending.submitted().await, sending.submitted().await);
    sending.answer(&failed, taken_as("c1")).await;
    sending.answer(&open, taken_as("c2")).await;
    let unknown = |id, state| raw(id, ReceiptKind::UnknownState, state);
    sending.keep_raw(RawReceipt { error: Some("034".to_owned()), ..unknown("c1", "GONE") }).await;
    sending.keep_raw(unknown("stranger", "GONE")).await;
    sending.keep_raw(unknown("c2", "PENDING")).await;
    sending.keep_raw(unknown("c2", "OTHER")).await;
    let delivery = sending.world.service.delivery();
    assert_eq!(delivery.match_waiting().await.unwrap(), 0);
    let mut named = network(&[("acme", 1, None)]);
    let gone = Some((Failed, Some(DeliveryError::Undeliverable)));
    named.carriers[0].named = NamedStates {
        states: [("GONE".to_owned(), gone), ("PENDING".to_owned(), None)].into(),
        errors: [("034".to_owned(), DeliveryError::HandsetUnavailable)].into(),
    };
    delivery.set_network(named);
    assert_eq!(delivery.match_waiting().await.unwrap(), 1);
    assert_eq!(delivery.match_waiting().await.unwrap(), 0);
    sending.assert_ended(failed.id(), Failed, "handset_unavailable_034").await;
    sending.assert_status(open.id(), Submitted).await;
    let found = delivery.carrier_receipts("acme", &ReceiptFilter::All).await.unwrap();
    let outcomes: Vec<_> = found.receipts.iter().map(|receipt| receipt.outcome).collect();
    assert_eq!(outcomes, [UnknownState, Intermediate, Unmatched, Matched]);
    assert_eq!(sending.count(CarrierEvent::Failed), 1);
    sending.assert_sound().await;
}

async fn answers_hide_no_receipts_and_equal_ones_are_kept_once_a_second(backend: Backend) {
    let sending = Sending::by_acme(backend).await;
    let (delivery, id) = (sending.world.service.delivery(), sending.send().await);
    let keep = async |outcome: SubmitOutcome| {
        sending.keep_raw(RawReceipt::of_answer(&outcome, id, "26657000001").unwrap()).await;
    };
    sending.keep_raw(raw("c1", ReceiptKind::UnknownState, "VANISHED")).await;
    for _ in 0..60 {
        keep(SubmitOutcome::Refused { error: "invalid_destination".to_owned() }).await;
    }
    let throttled = || SubmitOutcome::Throttled { error: "throttled".to_owned() };
    for ms in [0, 0, 999, 1] {
        sending.world.pass(ms);
        keep(SubmitOutcome::Accepted { carrier_message_id: None }).await;
        keep(throttled()).await;
    }
    let found = delivery.carrier_receipts("acme", &ReceiptFilter::All).await.unwrap().receipts;
    let count = |outcome| found.iter().filter(|receipt| receipt.outcome == outcome).count();
    assert_eq!((count(Throttled), count(AcceptedWithoutId)), (2, 2));
    assert_eq!((count(Refused), count(UnknownState)), (46, 1));
    assert_eq!((found[0].outcome, found[0].transid), (Throttled, Some(id)));
    let accepted = SubmitOutcome::Accepted { carrier_message_id: Some("c1".to_owned()) };
    assert!(RawReceipt::of_answer(&accepted, id, "26657000001").is_none());
}

async fn raw_receipts_are_deleted_after_their_days(backend: Backend) {
    let sending = Sending::by_acme(backend).await;
    let delivery = sending.world.service.delivery();
    let keep = async |id: &str| {
        let unknown = raw(id, ReceiptKind::UnknownState, "VANISHED");
        sending.keep_raw(RawReceipt { raw: "x".repeat(5000), ..unknown }).await;
    };
    keep("old").await;
    sending.world.pass(7 * 24 * HOUR_MS);
    keep("new").await;
    let count = async |filter: ReceiptFilter| {
        delivery.carrier_receipts("acme", &filter).await.unwrap().receipts.len()
    };
    assert_eq!(count(ReceiptFilter::All).await, 2);
    sending.world.pass(1);
    delivery.forget_segments().await.unwrap();
    assert_eq!(count(ReceiptFilter::All).await, 1);
    assert_eq!(count(ReceiptFilter::Id("old".to_owned())).await, 0);
    let found = delivery.carrier_receipts("acme", &ReceiptFilter::Id("new".to_owned())).await;
    assert_eq!(found.unwrap().receipts[0].raw.as_ref().unwrap().len(), 1024);
    let carriers = delivery.carriers().await.unwrap();
    let acme = carriers.iter().find(|carrier| carrier.name == "acme").unwrap();
    assert_eq!(acme.receipts_unknown_state, 2);

    // A receipt may begin with a text, so it is kept no longer than texts.
    let mut sending = sending;
    sending.world.limits.text_days = 3;
    let sending = sending.reopen().await;
    let delivery = sending.world.service.delivery();
    for (ms, left) in [(3 * 24 * HOUR_MS - 1, 1), (1, 0)] {
        sending.world.pass(ms);
        delivery.forget_segments().await.unwrap();
        let found = delivery.carrier_receipts("acme", &ReceiptFilter::All).await.unwrap();
        assert_eq!(found.receipts.len(), left);
    }
}
