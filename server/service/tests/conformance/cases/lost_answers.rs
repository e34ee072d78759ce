//! Messages whose submit got no response: they wait for a receipt, and are submitted once more if
//! the application wants that.

use domain::LostAnswer;
use domain::MessageStatus::{Delivered, Expired, Failed, Rejected, Submitted, Unknown};
use service::{Actor, CarrierReceipt, Leases, Refusal, Settlement, SubmitOutcome, user_reference};

use crate::database::Backend;
use crate::network::{lost, refused, taken_as};
use crate::sending::{Handed, RESEND_MS, Sending, receipt};
use crate::world::{HOUR_MS, money};

on_each_backend![
    a_message_whose_answer_is_lost_waits_for_a_receipt_and_is_never_sent_again,
    a_message_whose_answer_is_lost_is_sent_once_more_if_the_application_wants_it,
    a_second_submit_that_is_refused_gives_nothing_back,
    a_receipt_keeps_a_message_from_being_sent_again,
    a_carrier_id_that_comes_late_keeps_a_message_from_being_sent_again,
    messages_that_a_process_had_claimed_when_it_ended_are_unknown,
    an_answer_that_comes_late_settles_a_message_that_is_still_open,
    a_late_refusal_of_a_segment_releases_only_what_no_carrier_took,
    an_id_that_is_stored_early_survives_the_process,
    a_message_that_lost_a_segment_is_not_settled_as_delivered,
    a_message_that_is_being_submitted_is_not_decided_about,
];

/// Submits a message whose response is lost, for an application with the policy `resend`.
async fn lost_to_be_resent(sending: &Sending) -> Handed {
    sending.set_lost_answer(LostAnswer::Resend).await;
    let handed = sending.submitted().await;
    sending.answer(&handed, lost()).await;
    sending.assert_status(handed.id(), Unknown).await;
    handed
}

async fn a_message_whose_answer_is_lost_waits_for_a_receipt_and_is_never_sent_again(
    backend: Backend,
) {
    let sending = Sending::by_acme(backend).await;
    let handed = sending.submitted().await;
    sending.answer(&handed, lost()).await;
    sending.assert_status(handed.id(), Unknown).await;
    sending.assert_sound().await;
    sending.world.pass(RESEND_MS * 10);
    sending.assert_nothing_due("acme").await;
    sending.world.pass(48 * HOUR_MS);
    sending.world.service.delivery().expire().await.unwrap();
    sending.assert_ended(handed.id(), Expired, "no_answer").await;
    let charge = sending.detail(handed.id()).await.charge;
    assert_eq!(charge.released, money("0"));
    sending.assert_sound().await;
}

async fn a_message_whose_answer_is_lost_is_sent_once_more_if_the_application_wants_it(
    backend: Backend,
) {
    let sending = Sending::by_acme(backend).await;
    let handed = lost_to_be_resent(&sending).await;
    // It waits for a receipt first.
    sending.assert_nothing_due("acme").await;
    sending.world.pass(RESEND_MS);
    let again = sending.claim_one("acme").await;
    assert_eq!(again.id(), handed.id());
    assert_eq!(again.message.submitted_segments.len(), 0);
    sending.assert_sound().await;
    // It is never submitted a third time, whatever the outcome.
    sending.answer(&again, lost()).await;
    sending.world.pass(RESEND_MS * 10);
    sending.assert_nothing_due("acme").await;
    sending.assert_status(handed.id(), Unknown).await;
    sending.assert_sound().await;
}

async fn a_second_submit_that_is_refused_gives_nothing_back(backend: Backend) {
    let sending = Sending::by_acme(backend).await;
    let handed = lost_to_be_resent(&sending).await;
    sending.world.pass(RESEND_MS);
    let again = sending.claim_one("acme").await;
    sending.answer(&again, refused()).await;
    sending.assert_status(handed.id(), Unknown).await;
    sending.assert_balance("99.95").await;
    sending.assert_sound().await;
}

async fn a_receipt_keeps_a_message_from_being_sent_again(backend: Backend) {
    let sending = Sending::by_acme(backend).await;
    let handed = lost_to_be_resent(&sending).await;
    let echoed = CarrierReceipt {
        user_reference: Some(user_reference(handed.id(), 1)),
        number: handed.message.address.clone(),
        ..receipt("c1", Delivered)
    };
    sending.receive(echoed).await;
    sending.assert_status(handed.id(), Delivered).await;
    sending.world.pass(RESEND_MS);
    sending.assert_nothing_due("acme").await;
    sending.assert_sound().await;
}

async fn a_carrier_id_that_comes_late_keeps_a_message_from_being_sent_again(backend: Backend) {
    let sending = Sending::by_acme(backend).await;
    let handed = lost_to_be_resent(&sending).await;
    // The response comes after the claim has ended. It changes no status, but its ID is stored.
    sending.answer(&handed, taken_as("c1")).await;
    sending.assert_status(handed.id(), Unknown).await;
    sending.world.pass(RESEND_MS);
    let again = sending.claim_one("acme").await;
    assert_eq!(again.message.submitted_segments, [1]);
    sending.answer_segments(&again, 1, &[]).await;
    sending.assert_status(handed.id(), Submitted).await;
    sending.receive(receipt("c1", Delivered)).await;
    sending.assert_status(handed.id(), Delivered).await;
    sending.assert_sound().await;
}

async fn messages_that_a_process_had_claimed_when_it_ended_are_unknown(backend: Backend) {
    let sending = Sending::by_acme(backend).await;
    let held = sending.submitted().await;
    sending.set_lost_answer(LostAnswer::Resend).await;
    let resent = sending.submitted().await;
    let sending = sending.reopen().await;
    let service = &sending.world.service;
    assert_eq!(service.delivery().end_leases(Leases::All).await.unwrap(), 2);
    sending.assert_sound().await;
    // The application's policy at the end of the claim counts.
    for handed in [&held, &resent] {
        sending.assert_status(handed.id(), Unknown).await;
    }
    sending.world.pass(RESEND_MS);
    assert_eq!(sending.claim("acme").await.len(), 2);
    // After a second crash it isn't submitted a third time.
    sending.world.pass(60_000);
    assert_eq!(service.delivery().end_leases(Leases::Over).await.unwrap(), 2);
    sending.world.pass(RESEND_MS);
    sending.assert_nothing_due("acme").await;
    sending.assert_sound().await;
}

async fn an_answer_that_comes_late_settles_a_message_that_is_still_open(backend: Backend) {
    let sending = Sending::by_acme(backend).await;
    let accepted = sending.submitted().await;
    let unnamed = sending.submitted().await;
    let refusal = sending.submitted().await;
    for handed in [&accepted, &unnamed, &refusal] {
        sending.answer(handed, lost()).await;
        sending.assert_status(handed.id(), Unknown).await;
    }
    sending.assert_balance("99.85").await;
    sending.world.pass(1000);
    sending.answer(&accepted, taken_as("c1")).await;
    sending.answer(&unnamed, SubmitOutcome::Accepted { carrier_message_id: None }).await;
    sending.answer(&refusal, refused()).await;
    for handed in [&accepted, &unnamed] {
        sending.assert_status(handed.id(), Submitted).await;
        let detail = sending.detail(handed.id()).await;
        assert_eq!(detail.record.submitted_at, Some(sending.world.now()));
        let note = "the carrier answered late and accepted it";
        assert_eq!(sending.notes(handed.id(), note).await, 1);
    }
    sending.assert_ended(refusal.id(), Rejected, "refused_by_carrier").await;
    let note = "the carrier answered late and refused it: refused_by_carrier";
    assert_eq!(sending.notes(refusal.id(), note).await, 1);
    sending.assert_balance("99.9").await;
    // A second late answer changes nothing.
    sending.answer(&accepted, refused()).await;
    sending.assert_status(accepted.id(), Submitted).await;
    sending.receive(receipt("c1", Delivered)).await;
    sending.assert_status(accepted.id(), Delivered).await;
    sending.assert_balance("99.9").await;
    sending.assert_sound().await;
}

async fn a_late_refusal_of_a_segment_releases_only_what_no_carrier_took(backend: Backend) {
    let sending = Sending::by_acme(backend).await;
    // The carrier took the other segment.
    let taken = sending.submitted().await;
    sending.answer_segments(&taken, 2, &[(1, lost()), (2, taken_as("c2"))]).await;
    sending.answer_segments(&taken, 2, &[(1, refused())]).await;
    sending.assert_ended(taken.id(), Failed, "refused_by_carrier").await;
    // Nothing is known about the other segment.
    let open = sending.submitted().await;
    sending.answer_segments(&open, 2, &[(1, lost()), (2, lost())]).await;
    sending.answer_segments(&open, 2, &[(1, refused())]).await;
    sending.assert_status(open.id(), Unknown).await;
    // Both are refused.
    let none = sending.submitted().await;
    sending.answer_segments(&none, 2, &[(1, lost()), (2, lost())]).await;
    sending.answer_segments(&none, 2, &[(1, refused()), (2, refused())]).await;
    sending.assert_ended(none.id(), Rejected, "refused_by_carrier").await;
    sending.assert_balance("99.9").await;
    // The first submit may have reached the carrier.
    let twice = lost_to_be_resent(&sending).await;
    sending.world.pass(RESEND_MS);
    let again = sending.claim_one("acme").await;
    sending.answer(&again, lost()).await;
    sending.answer(&again, refused()).await;
    sending.assert_status(twice.id(), Unknown).await;
    sending.assert_sound().await;
}

async fn an_id_that_is_stored_early_survives_the_process(backend: Backend) {
    let sending = Sending::by_acme(backend).await;
    let whole = sending.submitted().await;
    sending.receive(receipt("p1", Delivered)).await;
    sending.answer_early(&whole, 2, &[(1, taken_as("p1"))]).await;
    sending.assert_sound().await;
    sending.answer_segments(&whole, 2, &[(1, taken_as("p1")), (2, taken_as("p2"))]).await;
    sending.assert_status(whole.id(), Submitted).await;
    let file = sending.world.service.support().message_file(whole.id()).await.unwrap().unwrap();
    assert!(file.segments.iter().all(|segment| segment.submits == 1), "{:?}", file.segments);
    sending.receive(receipt("p2", Delivered)).await;
    sending.assert_status(whole.id(), Delivered).await;
    // The process dies before the other answer comes.
    let cut = sending.submitted().await;
    sending.answer_early(&cut, 2, &[(1, taken_as("q1"))]).await;
    sending.world.pass(61_000);
    let delivery = sending.world.service.delivery();
    delivery.end_leases(Leases::Over).await.unwrap();
    sending.assert_status(cut.id(), Unknown).await;
    sending.assert_sound().await;
    sending.receive(receipt("q1", Delivered)).await;
    let echoed = CarrierReceipt {
        user_reference: Some(user_reference(cut.id(), 2)),
        number: cut.message.address.clone(),
        ..receipt("q2", Delivered)
    };
    sending.receive(echoed).await;
    sending.assert_status(cut.id(), Delivered).await;
    sending.assert_sound().await;
}

async fn a_message_that_lost_a_segment_is_not_settled_as_delivered(backend: Backend) {
    let sending = Sending::by_acme(backend).await;
    let support = sending.world.service.support();
    let handed = sending.submitted().await;
    sending.answer_segments(&handed, 2, &[(1, taken_as("c1")), (2, lost())]).await;
    sending.receive(receipt("c1", Failed)).await;
    let id = handed.id();
    sending.assert_status(id, Unknown).await;
    let settled = support.settle_message(&Actor::CommandLine, id, Settlement::Delivered).await;
    assert_eq!(settled.unwrap_err().refusal(), Some(&Refusal::OutcomeKnown));
    sending.assert_status(id, Unknown).await;
    support.settle_message(&Actor::CommandLine, id, Settlement::Failed).await.unwrap();
    sending.assert_status(id, Failed).await;
    sending.assert_sound().await;
}

async fn a_message_that_is_being_submitted_is_not_decided_about(backend: Backend) {
    let sending = Sending::by_acme(backend).await;
    let support = sending.world.service.support();
    let handed = lost_to_be_resent(&sending).await;
    sending.world.pass(RESEND_MS);
    let again = sending.claim_one("acme").await;
    let requeued = support.requeue_message(&Actor::CommandLine, handed.id()).await;
    assert_eq!(requeued.unwrap_err().refusal(), Some(&Refusal::BeingSubmitted));
    let settling = support.settle_message(&Actor::CommandLine, handed.id(), Settlement::NeverSent);
    assert_eq!(settling.await.unwrap_err().refusal(), Some(&Refusal::BeingSubmitted));
    sending.answer(&again, taken_as("c1")).await;
    sending.assert_status(handed.id(), Submitted).await;
    sending.assert_nothing_due("acme").await;
    sending.assert_sound().await;
}
