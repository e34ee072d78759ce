use std::time::Duration;

use super::*;

/// A response, then submits of 3, 4 and 5 octets, then a response.
fn filled(now: Instant) -> Outbox {
    let mut outbox = Outbox::default();
    outbox.append(|out| out.extend_from_slice(b"r"));
    for (sequence, text) in [(1, "aaa"), (2, "bbbb"), (3, "ccccc")] {
        let not_after = now + Duration::from_secs(sequence.into());
        outbox.append_submit(sequence, not_after, |out| {
            out.extend_from_slice(text.as_bytes());
        });
    }
    outbox.append(|out| out.extend_from_slice(b"R"));
    outbox
}

/// A test through the public API couldn't see how many bytes the socket accepted.
#[test]
fn a_submit_is_written_with_its_last_byte() {
    let mut outbox = filled(Instant::now());
    let mut written = Vec::new();
    for taken in 1..=14 {
        outbox.took(1);
        while let Some(sequence) = outbox.next_written() {
            written.push((taken, sequence));
        }
    }
    assert_eq!(written, [(4, 1), (8, 2), (13, 3)]);
    assert_eq!(outbox.len(), 0);
}

#[test]
fn only_submits_that_are_not_begun_are_removed() {
    let now = Instant::now();
    let rests: [(&[u32], &[u8]); 15] = [
        (&[1, 2, 3], b"rR"),
        (&[1, 2, 3], b"R"),
        (&[2, 3], b"aaR"),
        (&[2, 3], b"aR"),
        (&[2, 3], b"R"),
        (&[3], b"bbbR"),
        (&[3], b"bbR"),
        (&[3], b"bR"),
        (&[3], b"R"),
        (&[], b"ccccR"),
        (&[], b"cccR"),
        (&[], b"ccR"),
        (&[], b"cR"),
        (&[], b"R"),
        (&[], b""),
    ];
    for (taken, (removed, rest)) in rests.into_iter().enumerate() {
        let mut outbox = filled(now);
        outbox.took(taken);
        assert_eq!(outbox.remove(|_| true), removed, "{taken}");
        assert_eq!(outbox.bytes, rest, "{taken}");
        assert_eq!(outbox.not_after(), None);
        // A submit that was begun still counts as written with its own last byte.
        outbox.took(rest.len());
        let written = std::iter::from_fn(|| outbox.next_written());
        assert_eq!(written.count(), 3 - removed.len(), "{taken}");
    }
}

#[test]
fn removing_a_submit_moves_the_later_ones_up() {
    let now = Instant::now();
    let mut outbox = filled(now);
    let second = now + Duration::from_secs(2);
    assert_eq!(outbox.remove(|not_after| not_after == second), [2]);
    assert_eq!(outbox.bytes, &b"raaacccccR"[..]);
    assert_eq!(outbox.not_after(), Some(now + Duration::from_secs(1)));
    outbox.took(8);
    assert_eq!(outbox.next_written(), Some(1));
    assert_eq!(outbox.next_written(), None);
    outbox.took(1);
    assert_eq!(outbox.next_written(), Some(3));
}

#[test]
fn one_submit_is_offered_at_a_time_with_the_bytes_before_it() {
    let now = Instant::now();
    let mut outbox = filled(now);
    let mut offered = Vec::new();
    while outbox.len() > 0 {
        offered.push(outbox.offer().to_vec());
        // The socket accepts all but one octet of an offer, and that octet with the next write.
        outbox.took(outbox.offer().len().saturating_sub(1).max(1));
    }
    let expected: [&[u8]; 7] = [b"raaa", b"a", b"bbbb", b"b", b"ccccc", b"c", b"R"];
    assert_eq!(offered, expected);
}

#[test]
fn a_submit_that_is_begun_is_not_overdue() {
    let now = Instant::now();
    let (first, late) = (now + Duration::from_secs(1), now + Duration::from_secs(9));
    let mut outbox = filled(now);
    assert!(!outbox.is_overdue(first) && outbox.is_overdue(late));
    outbox.took(2);
    assert!(!outbox.is_overdue(late));
    outbox.took(2);
    assert!(outbox.is_overdue(late));
    outbox.took(outbox.len());
    assert!(!outbox.is_overdue(late));
}

#[test]
fn after_abandoning_only_written_submits_are_known() {
    let mut outbox = filled(Instant::now());
    outbox.took(9);
    outbox.abandon();
    assert_eq!(outbox.len(), 0);
    assert_eq!(outbox.next_written(), Some(1));
    assert_eq!(outbox.next_written(), Some(2));
    assert_eq!(outbox.next_written(), None);
}
