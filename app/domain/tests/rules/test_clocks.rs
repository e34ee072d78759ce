//! The clock of an application's test key.

use domain::timestamp::DAY_MS;
use domain::{TestClock, Timestamp};
use proptest::prelude::*;

use crate::seeded;

const START: i64 = 1_800_000_000_000;

fn at(ms: i64) -> Timestamp {
    Timestamp::from_unix_ms(START + ms)
}

fn moved(moves: &[(i64, i64)]) -> TestClock {
    let mut clock = TestClock::default();
    for &(after, by) in moves {
        assert!(clock.advance(at(after), by));
    }
    clock
}

#[test]
fn a_clock_goes_ahead_up_to_35_days_and_back() {
    let mut clock = TestClock::default();
    assert!(!clock.is_moved());
    for by in [0, -1, 35 * DAY_MS + 1, i64::MAX] {
        assert!(!clock.advance(at(0), by), "{by}");
    }
    assert!(clock.advance(at(0), 34 * DAY_MS));
    assert!(!clock.advance(at(1), DAY_MS + 1));
    assert!(clock.advance(at(1), DAY_MS));
    assert_eq!(clock.offset_ms(), 35 * DAY_MS);
    clock.reset();
    assert_eq!((clock.offset_ms(), clock.is_moved()), (0, false));
    assert_eq!(clock.runs_until(at(0), 5), at(5));
}

#[test]
fn a_time_passes_with_the_moves_that_follow_its_beginning() {
    let clock = moved(&[(100, 1000), (200, 1000)]);
    for (since, ms, until) in [
        // It had passed before the first move.
        (0, 50, 50),
        (0, 100, 100),
        // A move lets it pass.
        (0, 101, 100),
        (0, 1100, 100),
        (0, 1101, 101),
        (0, 1300, 200),
        (0, 2300, 300),
        // It began after the first move.
        (100, 50, 150),
        (150, 1000, 200),
        (150, 2000, 1150),
        (200, 10, 210),
    ] {
        assert_eq!(clock.runs_until(at(since), ms), at(until), "{since} {ms}");
    }
}

#[test]
fn moves_beyond_the_most_remembered_still_count() {
    let mut clock = TestClock::default();
    for step in 0..1500 {
        assert!(clock.advance(at(step), 1000));
    }
    assert_eq!(clock.offset_ms(), 1_500_000);
    assert_eq!(clock.runs_until(at(1499), 7), at(1506));
    assert_eq!(clock.runs_until(at(1400), 99_000), at(1499));
}

proptest! {
    #![proptest_config(seeded(300))]

    /// Both directions agree: a time has passed for what began by then, and for nothing later.
    #[test]
    fn what_began_earlier_has_passed_and_nothing_else(
        moves in prop::collection::vec((0_i64..50, 1_i64..100), 0..6),
        ms in 1_i64..400,
        rest in 0_i64..100,
    ) {
        let (mut clock, mut time) = (TestClock::default(), 0);
        for (pause, by) in moves {
            time += pause;
            prop_assert!(clock.advance(at(time), by));
        }
        let now = at(time + rest);
        let began = clock.has_run_since(now, ms);
        prop_assert!(clock.runs_until(began, ms) <= now);
        prop_assert!(clock.runs_until(began.plus_ms(1), ms) > now);
    }
}
