//! Messages of several segments.

use domain::MessageStatus::{self, Delivered, Expired, Failed, Submitted};
use service::SubmitOutcome;

use crate::database::Backend;
use crate::network::{refused, taken_as, throttled};
use crate::sending::{Sending, receipt};
use crate::world::HOUR_MS;

on_each_backend![
    a_message_is_delivered_when_all_its_segments_are,
    segments_that_were_not_taken_follow_those_that_were,
    the_charge_stays_when_the_rest_of_a_message_is_refused_or_expires,
    a_failed_segment_fails_the_message_though_the_others_have_no_receipt,
];

async fn a_message_is_delivered_when_all_its_segments_are(backend: Backend) {
    for (ends, expected) in [
        ([Delivered, Delivered, Delivered], Delivered),
        ([Delivered, Expired, Failed], Failed),
        ([Expired, Delivered, Delivered], Expired),
    ] {
        let sending = Sending::by_acme(backend).await;
        let handed = sending.submitted().await;
        let outcomes = [1, 2, 3].map(|n| (n, taken_as(&format!("c{n}"))));
        let taken = sending.answer_segments(&handed, 3, &outcomes).await;
        assert_eq!(taken, [handed.id()]);
        let found = sending.detail(handed.id()).await.record;
        assert_eq!((found.status, found.segments, found.pages), (Submitted, 3, 1));
        for (n, end) in (1..).zip(ends) {
            sending.assert_status(handed.id(), Submitted).await;
            sending.assert_sound().await;
            sending.receive(receipt(&format!("c{n}"), end)).await;
        }
        sending.assert_status(handed.id(), expected).await;
        sending.assert_balance("99.95").await;
        sending.assert_sound().await;
    }
}

async fn segments_that_were_not_taken_follow_those_that_were(backend: Backend) {
    let sending = Sending::by_acme(backend).await;
    let handed = sending.submitted().await;
    let outcomes = [(1, taken_as("c1")), (2, throttled()), (3, SubmitOutcome::NotSent)];
    sending.answer_segments(&handed, 3, &outcomes).await;
    let id = handed.id();
    sending.assert_status(id, MessageStatus::Sending).await;
    sending.assert_sound().await;
    sending.world.pass(1000);
    let again = sending.claim_one("acme").await;
    assert_eq!(again.message.submitted_segments, [1]);
    sending.answer_segments(&again, 3, &[(2, throttled()), (3, throttled())]).await;
    // However often the carrier throttles a message, its timeline says so once.
    assert_eq!(sending.notes(id, "the carrier asked to slow down").await, 1);
    sending.world.pass(1000);
    let again = sending.claim_one("acme").await;
    let outcomes = [(2, taken_as("c2")), (3, taken_as("c3"))];
    sending.answer_segments(&again, 3, &outcomes).await;
    sending.assert_status(id, Submitted).await;
    let record = sending.detail(id).await.record;
    assert_eq!(record.submitted_at, Some(sending.world.now()));
    sending.assert_sound().await;
}

async fn the_charge_stays_when_the_rest_of_a_message_is_refused_or_expires(backend: Backend) {
    let sending = Sending::by_acme(backend).await;
    let first = sending.submitted().await;
    let outcomes = [(1, taken_as("c1")), (2, refused())];
    sending.answer_segments(&first, 2, &outcomes).await;
    sending.assert_status(first.id(), Failed).await;
    sending.assert_sound().await;
    let second = sending.submitted().await;
    let outcomes = [(1, taken_as("d1")), (2, throttled())];
    sending.answer_segments(&second, 2, &outcomes).await;
    sending.world.pass(48 * HOUR_MS + 1);
    sending.world.service.delivery().expire().await.unwrap();
    let error = sending.detail(second.id()).await.record.error;
    assert_eq!(error.as_deref(), Some("expired_in_part"));
    sending.assert_balance("99.9").await;
    sending.assert_sound().await;
}

async fn a_failed_segment_fails_the_message_though_the_others_have_no_receipt(backend: Backend) {
    let sending = Sending::by_acme(backend).await;
    let handed = sending.submitted().await;
    let outcomes = [(1, taken_as("c1")), (2, taken_as("c2"))];
    sending.answer_segments(&handed, 2, &outcomes).await;
    sending.receive(receipt("c2", Failed)).await;
    sending.assert_status(handed.id(), Submitted).await;
    sending.world.pass(48 * HOUR_MS + 1);
    sending.world.service.delivery().expire().await.unwrap();
    sending.assert_status(handed.id(), Failed).await;
    sending.assert_balance("99.95").await;
    sending.assert_sound().await;
}
