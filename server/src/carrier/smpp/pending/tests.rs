use domain::{MessageText, Number, Timestamp, Transid};
use tokio::time::Instant;

use super::*;

fn message() -> Claimed {
    Claimed {
        id: Transid(7),
        application_id: domain::ApplicationId(1),
        reference: None,
        test: false,
        number: Number::parse("57000001").unwrap(),
        address: "26657000001".to_owned(),
        sender: "Heliograph".to_owned(),
        message: MessageText::parse("Hello".to_owned(), 1).unwrap(),
        code: None,
        submitted_segments: Vec::new(),
        expires_at: Timestamp::from_unix_ms(0),
    }
}

fn lease(token: i64) -> Lease {
    Lease {
        token,
        shard: domain::ids::Shard::FIRST,
        until: Timestamp::from_unix_ms(0),
        not_after: Instant::now().into_std(),
    }
}

fn parts(count: usize) -> Vec<Submit> {
    let submit = Submit {
        is_secret: false,
        tag: 0,
        not_after: Instant::now(),
        service_type: String::new(),
        source: ::smpp::Address::default(),
        destination: ::smpp::Address::default(),
        esm_class: 0,
        validity_period: None,
        registered_delivery: 1,
        data_coding: 0,
        short_message: Vec::new(),
        sar_msg_ref_num: None,
        sar_total_segments: None,
        sar_segment_seqnum: None,
        message_payload: None,
        user_message_reference: None,
        tlvs: Vec::new(),
    };
    vec![submit; count]
}

fn lost() -> SubmitOutcome {
    SubmitOutcome::Unknown { error: "lost".to_owned() }
}

fn taken() -> SubmitOutcome {
    SubmitOutcome::Accepted { carrier_message_id: Some("c".to_owned()) }
}

#[test]
fn a_late_answer_to_a_part_does_not_complete_the_message() {
    let (mut pending, mut results) = (Pending::default(), Vec::new());
    let tags = pending.add(&message(), lease(1), &parts(2));
    let [first, second] = [0, 1].map(|place: usize| tags[place].unwrap());
    pending.answer(first, lost(), &mut results);
    pending.answer(first, taken(), &mut results);
    assert!(results.is_empty());
    pending.answer(second, SubmitOutcome::NotSent, &mut results);
    let outcomes = [(1, taken()), (2, SubmitOutcome::NotSent)];
    assert_eq!(results[0].outcomes, outcomes);
    assert_eq!(results.len(), 1);
}

#[test]
fn a_late_answer_replaces_the_unknown_outcome_that_is_not_reported_yet() {
    let (mut pending, mut results) = (Pending::default(), Vec::new());
    let tag = pending.add(&message(), lease(1), &parts(1))[0].unwrap();
    pending.answer(tag, lost(), &mut results);
    pending.answer(tag, taken(), &mut results);
    assert_eq!((results.len(), &results[0].outcomes[..]), (1, &[(1, taken())][..]));
    // If the unknown outcome was reported, the late answer is a separate result.
    let tag = pending.add(&message(), lease(1), &parts(1))[0].unwrap();
    pending.answer(tag, lost(), &mut results);
    results.clear();
    pending.answer(tag, taken(), &mut results);
    assert_eq!(results[0].outcomes, [(1, taken())]);
}

#[test]
fn a_carrier_message_id_is_taken_early_once_and_only_if_other_answers_are_missing() {
    let (mut pending, mut results) = (Pending::default(), Vec::new());
    let tags = pending.add(&message(), lease(1), &parts(3));
    let [first, second, third] = [0, 1, 2].map(|place: usize| tags[place].unwrap());
    pending.answer(second, taken(), &mut results);
    let early = pending.take_early();
    assert_eq!((early.len(), &early[0].outcomes[..]), (1, &[(2, taken())][..]));
    assert!(pending.take_early().is_empty());
    pending.answer(first, taken(), &mut results);
    pending.answer(third, taken(), &mut results);
    assert!(pending.take_early().is_empty());
    assert_eq!(results[0].outcomes.len(), 3);
}

#[test]
fn two_claims_of_a_message_keep_their_answers_apart() {
    let (mut pending, mut results) = (Pending::default(), Vec::new());
    let old = pending.add(&message(), lease(1), &parts(1))[0].unwrap();
    let new = pending.add(&message(), lease(2), &parts(1))[0].unwrap();
    pending.answer(old, SubmitOutcome::NotSent, &mut results);
    pending.answer(new, taken(), &mut results);
    let tokens: Vec<_> = results.iter().map(|result| result.lease.token).collect();
    assert_eq!(tokens, [1, 2]);
    assert_eq!(results[1].outcomes, [(1, taken())]);
}
