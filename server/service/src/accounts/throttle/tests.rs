use domain::Timestamp;

use super::{Attempt, Throttle};
use crate::Limits;

fn throttle() -> Throttle {
    Throttle::new(&Limits::default())
}

fn at(ms: i64) -> Timestamp {
    Timestamp::from_unix_ms(1_000_000_000_000 + ms)
}

/// Returns how many of these attempts are counted.
fn counted(
    throttle: &Throttle,
    what: Attempt,
    attempts: impl Iterator<Item = (String, String)>,
) -> usize {
    attempts
        .filter(|(client, account)| throttle.count(what, client, account, at(0)).is_ok())
        .count()
}

#[test]
fn each_scope_has_its_limit() {
    let one = |client: fn(usize) -> String, account: fn(usize) -> String| {
        (0..5_000).map(move |n| (client(n), account(n)))
    };
    let same = |_| "2001:db8::1".to_owned();
    let in_64 = |n| format!("2001:db8::{n:x}");
    let in_48 = |n| format!("2001:db8:0:{n:x}::1");
    let any = |n| format!("2001:{n:x}::1");
    let account = |_| "one@example.org".to_owned();
    let others = |n| format!("{n}@example.org");
    for (what, client, name, max) in [
        (Attempt::SignIn, same as fn(usize) -> String, account as fn(usize) -> String, 10),
        (Attempt::SignIn, in_64, account, 10),
        (Attempt::SignIn, any, account, 100),
        (Attempt::SignIn, same, others, 50),
        (Attempt::SignIn, in_64, others, 50),
        (Attempt::SignIn, in_48, others, 200),
        // Each of these networks stays within its own share.
        (Attempt::SignIn, any, others, 5_000),
        (Attempt::Register, in_64, others, 20),
        (Attempt::Register, in_48, others, 100),
        (Attempt::Register, any, others, 5_000),
        (Attempt::ResetLink, same, account, 5),
        (Attempt::ResetLink, any, account, 5_000),
        (Attempt::ResetLink, same, others, 50),
        (Attempt::Reset, same, others, 20),
    ] {
        let throttle = throttle();
        assert_eq!(counted(&throttle, what, one(client, name)), max, "{what:?}");
        let later = at(3_600_000);
        assert!(throttle.count(what, &client(0), &name(0), later).is_ok());
    }
}

#[test]
fn fifty_networks_at_their_limits_lock_nobody_else_out() {
    for (what, share) in [
        (Attempt::SignIn, 10),
        (Attempt::Register, 20),
        (Attempt::ResetLink, 5),
        (Attempt::Reset, 10),
    ] {
        let throttle = throttle();
        assert!(throttle.strained(at(0)).is_empty());
        let attempts = (0..50).flat_map(|network| {
            (0..400).map(move |n| (format!("198.18.{network}.{}", n % 250), format!("{n}@x")))
        });
        let taken = counted(&throttle, what, attempts);
        let (_, max) = throttle.total(what).unwrap();
        let max = usize::try_from(max).unwrap();
        // The first networks used up the total. The others had their shares.
        assert!((max..max + 50 * share).contains(&taken), "{what:?} {taken}");
        assert_eq!(throttle.strained(at(0)), [what.code()]);
        // Another client can still sign in slowly, even repeatedly, up to the share of its
        // network.
        let one = |n| throttle.count(what, "203.0.113.9", &format!("{n}@y"), at(0));
        for n in 0..share {
            let delay = one(n).unwrap().delay;
            assert!(delay.as_millis() >= 500, "{what:?} {delay:?}");
        }
        assert!(one(share).is_err());
        // Only the client's own limits apply in a network of the account's owner.
        let home = throttle.count_in_home(what, "203.0.113.10", "one@example.org", at(0));
        assert!(home.is_ok());
        assert!(throttle.strained(at(3_600_000)).is_empty());
    }
}

#[test]
fn a_full_table_of_counts_locks_nobody_out() {
    let throttle = throttle();
    for _ in 0..10 {
        throttle.count(Attempt::SignIn, "192.0.2.1", "one@x", at(0)).unwrap();
    }
    for n in 0..super::COUNTS_MAX / 4 {
        let (a, b) = (n / 65_536, n % 65_536);
        let client = format!("2001:{a:x}:{b:x}::1");
        throttle.count(Attempt::SignIn, &client, &format!("{n}@x"), at(0)).unwrap();
    }
    assert!(throttle.counts().by_name.len() <= super::COUNTS_MAX + 1);
    // The count that has reached its limit wasn't dropped.
    let refused = throttle.count(Attempt::SignIn, "192.0.2.1", "one@x", at(0));
    assert!(refused.is_err());
}

#[test]
fn a_success_is_not_counted_and_ends_the_delays() {
    let throttle = throttle();
    let count = || throttle.count(Attempt::SignIn, "192.0.2.1", "one@example.org", at(0));
    for _ in 0..1_000 {
        let success = count().unwrap();
        throttle.succeed(&success);
    }
    let delays: Vec<_> = (0..10).map(|_| count().unwrap().delay.as_millis()).collect();
    assert_eq!(delays, [0, 0, 0, 0, 0, 100, 200, 400, 800, 1600]);
    assert!(count().is_err());
    assert!(throttle.counts().by_name.len() < 10);
}
