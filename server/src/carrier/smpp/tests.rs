//! Submits and the end of their lease, against a scripted SMSC.

use domain::{MessageText, Number, Timestamp};
use tempfile::TempDir;
use testing::smsc::{Peer, SUBMIT_SM, Smsc, short_message};

use super::*;
use crate::config::Settings;
use crate::config::carriers::CarrierKind;

/// How long a claim lasts, and how much of that time an answer may take.
const LEASE: Duration = Duration::from_mins(1);
const ANSWER: Duration = Duration::from_secs(30);
const CLOCK: Timestamp = Timestamp::from_unix_ms(1_800_000_000_000);

fn settings(address: &str) -> SmppSettings {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("heliograph.toml");
    let text = format!(
        "[[carrier]]\nname = \"up\"\nkind = \"smpp\"\naddress = \"{address}\"\n\
         system_id = \"heliograph\"\npassword = \"secret\"\nwindow = 1\n"
    );
    std::fs::write(&file, text).unwrap();
    let settings = Settings::load(Some(&file), std::iter::empty(), &[]).unwrap();
    match settings.carriers.list.into_iter().next().unwrap().kind {
        CarrierKind::Smpp(smpp) => *smpp,
        kind => panic!("not SMPP: {kind:?}"),
    }
}

async fn bound() -> (SmppConnection, Peer) {
    let smsc = Smsc::start().await;
    let connection = SmppConnection::open(
        settings(&smsc.address()),
        None,
        Paces::default(),
        Clock::system(),
        LEASE,
        1,
    );
    let peer = smsc.bound().await;
    connection.until_free().await;
    (connection, peer)
}

/// Returns a lease under which a submit may begin until `last_start`.
fn lease(token: i64, last_start: Instant) -> Lease {
    Lease {
        token,
        shard: domain::ids::Shard::FIRST,
        until: CLOCK,
        not_after: (last_start + ANSWER).into_std(),
    }
}

fn message(text: &str) -> Claimed {
    Claimed {
        id: Transid(7),
        application_id: domain::ApplicationId(1),
        reference: None,
        test: false,
        number: Number::parse("57000001").unwrap(),
        address: "26657000001".to_owned(),
        sender: "Heliograph".to_owned(),
        message: MessageText::parse(text.to_owned(), 2).unwrap(),
        code: None,
        submitted_segments: Vec::new(),
        expires_at: CLOCK,
    }
}

async fn outcomes(connection: &SmppConnection) -> Vec<(u16, SubmitOutcome)> {
    let mut report = connection.report().await.unwrap();
    assert_eq!(report.submitted.len(), 1);
    report.submitted.remove(0).outcomes
}

fn taken() -> SubmitOutcome {
    SubmitOutcome::Accepted { carrier_message_id: Some("c".to_owned()) }
}

/// Submits a message, expects it as the SMSC's next PDU, and accepts it.
async fn expect(connection: &SmppConnection, peer: &mut Peer, text: &str) {
    connection.until_free().await;
    let last_start = Instant::now() + ANSWER;
    connection.submit(lease(9, last_start), vec![message(text)]);
    let submit = peer.expect(SUBMIT_SM).await;
    assert_eq!(short_message(&submit.body), text.as_bytes());
    peer.accept(&submit, "c").await;
    assert_eq!(outcomes(connection).await, [(1, taken())]);
}

#[tokio::test]
async fn a_submit_that_could_not_be_answered_within_its_lease_is_not_sent() {
    let (connection, mut peer) = bound().await;
    let late = Instant::now().checked_sub(Duration::from_millis(1)).unwrap();
    connection.submit(lease(1, late), vec![message("late")]);
    assert_eq!(outcomes(&connection).await, [(1, SubmitOutcome::NotSent)]);
    expect(&connection, &mut peer, "in time").await;
}

#[tokio::test]
async fn a_message_of_which_one_part_left_in_time_has_an_outcome_for_each_part() {
    let (connection, mut peer) = bound().await;
    let last_start = Instant::now() + Duration::from_secs(2);
    connection.submit(lease(1, last_start), vec![message(&"x".repeat(200))]);
    let first = peer.expect(SUBMIT_SM).await;
    tokio::time::sleep_until(last_start + Duration::from_millis(1)).await;
    peer.accept(&first, "c").await;
    let expected = [(1, taken()), (2, SubmitOutcome::NotSent)];
    let mut outcomes = outcomes(&connection).await;
    outcomes.sort_by_key(|(segment, _)| *segment);
    assert_eq!(outcomes, expected);
    expect(&connection, &mut peer, "in time").await;
}
