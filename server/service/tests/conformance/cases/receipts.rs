//! Matching a carrier's receipts to messages.

use domain::MessageStatus::{self, Delivered, Failed, Submitted, Unknown};
use domain::Timestamp;
use domain::records::MessageDetail;
use service::{CarrierReceipt, user_reference};

use crate::database::Backend;
use crate::network::{lost, taken_as};
use crate::sending::{Handed, Sending, receipt};
use crate::world::HOUR_MS;

on_each_backend![
    a_receipt_that_comes_before_the_answer_waits_for_it,
    receipts_that_come_twice_late_or_for_nothing_change_nothing,
    an_id_that_a_carrier_uses_again_means_the_younger_message,
    a_receipt_without_a_known_id_is_matched_if_exactly_one_message_fits,
    a_name_of_more_than_255_characters_is_dropped,
];

async fn a_receipt_that_comes_before_the_answer_waits_for_it(backend: Backend) {
    let sending = Sending::by_acme(backend).await;
    let handed = sending.submitted().await;
    sending.receive(receipt("c1", Delivered)).await;
    sending.assert_status(handed.id(), MessageStatus::Sending).await;
    sending.answer(&handed, taken_as("c1")).await;
    sending.assert_status(handed.id(), Delivered).await;
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
    sending.receive(echoed).await;
    sending.assert_status(second.id(), Delivered).await;
    let early = unnamed(&first, now.plus_ms(9 * 60_000));
    sending.receive(early).await;
    sending.assert_status(first.id(), Delivered).await;
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
