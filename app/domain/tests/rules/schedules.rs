//! When messages are due, and until when they may be submitted.

use domain::schedule::is_by_validity;
use domain::timestamp::DAY_MS;
use domain::{Due, Schedule, Timestamp, Validity};

const NOW: Timestamp = Timestamp::from_unix_ms(1_767_225_600_000);
const MINUTE_MS: i64 = 60_000;

fn due(after_ms: Option<i64>, validity: Option<&str>) -> Option<Due> {
    let validity = validity.map(|text| Validity::parse(text).unwrap());
    Schedule { send_at: after_ms.map(|ms| NOW.plus_ms(ms)), validity }.due(NOW, |_| None)
}

#[test]
fn a_validity_is_a_number_of_minutes() {
    for (text, minutes) in [("1", 1), ("0060", 60), ("2880", 2880)] {
        assert_eq!(Validity::parse(text).map(Validity::minutes), Some(minutes));
    }
    for text in ["", "0", "-1", "+1", "2881", "1.5", "1e3", " 1", "99999999999999999999", "٣"] {
        assert_eq!(Validity::parse(text), None, "{text:?}");
    }
}

#[test]
fn a_time_is_at_most_35_days_ahead_and_5_minutes_late() {
    for ms in [-5 * MINUTE_MS, -1, 0] {
        assert_eq!(due(Some(ms), None), Some(Due::default()));
    }
    for ms in [1, DAY_MS, 35 * DAY_MS] {
        let at = NOW.plus_ms(ms);
        let expires_at = Some(at.plus_ms(2 * DAY_MS));
        assert_eq!(due(Some(ms), None), Some(Due { send_at: Some(at), expires_at }));
    }
    for ms in [i64::MIN, -5 * MINUTE_MS - 1, 35 * DAY_MS + 1, i64::MAX] {
        assert_eq!(due(Some(ms), None), None, "{ms}");
    }
}

#[test]
fn a_validity_counts_from_the_time() {
    assert_eq!(due(None, None), Some(Due::default()));
    assert_eq!(due(None, Some("2880")), Some(Due::default()));
    let short = due(None, Some("10")).unwrap();
    assert_eq!(short.expires_at, Some(NOW.plus_ms(10 * MINUTE_MS)));
    let later = due(Some(DAY_MS), Some("10")).unwrap();
    assert_eq!(later.expires_at, Some(NOW.plus_ms(DAY_MS + 10 * MINUTE_MS)));
    assert!(is_by_validity(short.expires_at, NOW));
    assert!(is_by_validity(later.expires_at, later.send_at.unwrap()));
    let whole = due(Some(DAY_MS), None).unwrap();
    assert!(!is_by_validity(whole.expires_at, whole.send_at.unwrap()));
    assert!(!is_by_validity(None, NOW));
}

#[test]
fn a_time_has_an_offset_and_exists() {
    let noon = Timestamp::parse("2027-03-01T12:00:00Z");
    for text in ["2027-03-01T12:00:00Z", "2027-03-01t14:00:00+02:00", "2027-03-01 12:00:00.000z"] {
        assert_eq!(Schedule::parse_time(text), noon, "{text}");
    }
    assert!(Schedule::parse_time("2028-02-29T00:00:00Z").is_some());
    for text in [
        "",
        "2027-03-01",
        "2027-03-01T12:00:00",
        "2027-03-01T12:00Z",
        "2027-02-29T12:00:00Z",
        "2027-03-01T24:00:00Z",
        "2016-12-31T23:59:60Z",
        "2027-03-01T12:00:00+2",
        "tomorrow",
        "٢٠٢٧-03-01T12:00:00Z",
    ] {
        assert_eq!(Schedule::parse_time(text), None, "{text:?}");
    }
}

#[test]
fn a_message_due_in_quiet_hours_waits_and_its_validity_begins_at_their_end() {
    let end = NOW.plus_ms(DAY_MS / 4);
    let quiet_end = |at: Timestamp| (at < end).then_some(end);
    let validity = Validity::parse("10");
    for after_ms in [None, Some(-60_000), Some(60_000)] {
        let schedule = Schedule { send_at: after_ms.map(|ms| NOW.plus_ms(ms)), validity };
        let due = schedule.due(NOW, quiet_end).unwrap();
        let expires_at = Some(end.plus_ms(10 * 60_000));
        assert_eq!(due, Due { send_at: Some(end), expires_at }, "{after_ms:?}");
    }
    let schedule = Schedule { send_at: Some(end), validity: None };
    assert_eq!(schedule.due(NOW, quiet_end).unwrap().send_at, Some(end));
    // The 35 days bound what a client asks for.
    let last = NOW.plus_ms(35 * DAY_MS);
    let late = |at: Timestamp| Some(at.plus_ms(1));
    let schedule = Schedule { send_at: Some(last), validity: None };
    assert_eq!(schedule.due(NOW, late).unwrap().send_at, Some(last.plus_ms(1)));
    let schedule = Schedule { send_at: Some(last.plus_ms(1)), validity: None };
    assert_eq!(schedule.due(NOW, late), None);
}
