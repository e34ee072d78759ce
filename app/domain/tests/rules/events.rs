//! Types and IDs of events.

use std::collections::HashSet;

use domain::{EventId, EventType, MessageStatus, Reference};

#[test]
fn each_type_has_a_code_of_its_own() {
    let codes: HashSet<i64> = EventType::ALL.into_iter().map(EventType::code).collect();
    assert_eq!(codes.len(), EventType::ALL.len());
    for kind in EventType::ALL {
        assert_eq!(EventType::from_code(kind.code()), Some(kind));
        assert_eq!(EventType::parse(kind.as_str()), Some(kind));
    }
    assert_eq!(EventType::from_code(1), None);
}

#[test]
fn a_status_has_the_event_with_its_name() {
    for status in MessageStatus::ALL {
        let event = EventType::of_status(status);
        let expected = EventType::parse(&format!("message.{status}"));
        assert_eq!(event, expected, "{status}");
        assert_eq!(event.and_then(EventType::status), expected.map(|_| status));
    }
    // Every final status has one.
    let finals = MessageStatus::ALL.into_iter().filter(|status| status.is_final());
    assert!(finals.into_iter().all(|status| EventType::of_status(status).is_some()));
}

#[test]
fn an_endpoint_that_names_no_type_gets_all_but_two() {
    let left_out: Vec<_> =
        EventType::ALL.into_iter().filter(|kind| !kind.is_sent_unasked()).collect();
    assert_eq!(left_out, [EventType::Submitted, EventType::Test]);
    assert!(!EventType::NAMED.contains(&EventType::Test));
}

#[test]
fn an_id_names_the_application_and_the_key() {
    let reference = Reference::parse("012345").unwrap();
    for (number, test) in [(0, false), (5, true), (i64::MAX, false)] {
        let id = EventId { number, reference, test };
        assert_eq!(EventId::parse(&id.to_string()), Some(id), "{id}");
    }
    let id = EventId { number: 0, reference, test: true };
    assert_eq!(id.to_string(), "e_0000000000000012345t");
    for wrong in [
        "",
        "t",
        "e_t",
        "e_0000000000000012345",
        "e_0000000000000012345x",
        "m_0000000000000012345t",
        "e_000000000000001234xt",
        "e_000000000000012345t",
        "e_zzzzzzzzzzzzz012345t",
        "e_0000000000000é12345t",
    ] {
        assert_eq!(EventId::parse(wrong), None, "{wrong}");
    }
}
