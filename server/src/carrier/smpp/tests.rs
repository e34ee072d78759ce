//! What a claim's time does, against a scripted SMSC.

use domain::{MessageText, Number, Timestamp};
use tempfile::TempDir;
use testing::smsc::{Peer, SUBMIT_SM, Smsc, short_message};

use super::*;
use crate::config::Settings;
use crate::config::carriers::CarrierKind;

/// How long claims hold, and how much of that an answer may take.
const LEASE: Duration = Duration::from_mins(1);
const ANSWER: Duration = Duration::from_secs(30);
const CLOCK: Timestamp = Timestamp::from_unix_ms(1_800_000_000_000);

fn settings(address: &str) -> SmppSettings {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("heliograph.toml");
    let text = format!(
        "[[carrier]]\nname = \"up\"\nkind = \"smpp\"\naddress = \"{address}\"\nsystem_id = \"heliograph\"\n\
         password = \"secret\"\nwindow = 1\n"
    );
    std::fs::write(&file, text).unwrap();
    let settings = Settings::load(Some(&file), std::iter::empty(), &[]).unwrap();
    match settings.carriers.list.into_iter().next().unwrap().kind {
        CarrierKind::Smpp(smpp) => smpp,
        kind => panic!("not SMPP: {kind:?}"),
    }
}

async fn bound() -> (SmppLine, Peer) {
    let smsc = Smsc::start().await;
    let line = SmppLine::open(settings(&smsc.address()), Clock::system(), LEASE, 1);
    let peer = smsc.bound().await;
    line.until_free().await;
    (line, peer)
}

/// A claim under which a submit may be begun until then.
fn lease(token: i64, last_start: Instant) -> Lease {
    Lease {
        token,
        until: CLOCK,
        not_after: (last_start + ANSWER).into_std(),
    }
}

fn message(text: &str) -> Claimed {
    Claimed {
        id: Transid(7),
        application_id: 1,
        number: Number::parse("57000001").unwrap(),
        address: "26657000001".to_owned(),
        sender: "Heliograph".to_owned(),
        message: MessageText::parse(text.to_owned(), 2).unwrap(),
        handed_over: Vec::new(),
        expires_at: CLOCK,
    }
}

async fn outcomes(line: &SmppLine) -> Vec<(u16, SubmitOutcome)> {
    let mut report = line.report().await.unwrap();
    assert_eq!(report.submitted.len(), 1);
    report.submitted.remove(0).outcomes
}

fn taken() -> SubmitOutcome {
    SubmitOutcome::Accepted {
        carrier_message_id: Some("c".to_owned()),
    }
}

/// The next that arrives is this one, and it is taken.
async fn expect(line: &SmppLine, peer: &mut Peer, text: &str) {
    line.until_free().await;
    let last_start = Instant::now() + ANSWER;
    line.submit(lease(9, last_start), vec![message(text)]);
    let submit = peer.expect(SUBMIT_SM).await;
    assert_eq!(short_message(&submit.body), text.as_bytes());
    peer.accept(&submit, "c").await;
    assert_eq!(outcomes(line).await, [(1, taken())]);
}

#[tokio::test]
async fn what_could_not_be_answered_in_its_claims_time_never_leaves() {
    let (line, mut peer) = bound().await;
    let late = Instant::now()
        .checked_sub(Duration::from_millis(1))
        .unwrap();
    line.submit(lease(1, late), vec![message("late")]);
    assert_eq!(outcomes(&line).await, [(1, SubmitOutcome::NotSent)]);
    expect(&line, &mut peer, "in time").await;
}

#[tokio::test]
async fn a_message_of_which_a_part_left_in_time_says_so_of_each_part() {
    let (line, mut peer) = bound().await;
    let last_start = Instant::now() + Duration::from_millis(200);
    line.submit(lease(1, last_start), vec![message(&"x".repeat(200))]);
    let first = peer.expect(SUBMIT_SM).await;
    tokio::time::sleep_until(last_start + Duration::from_millis(1)).await;
    peer.accept(&first, "c").await;
    let told = [(1, taken()), (2, SubmitOutcome::NotSent)];
    let mut outcomes = outcomes(&line).await;
    outcomes.sort_by_key(|(segment, _)| *segment);
    assert_eq!(outcomes, told);
    expect(&line, &mut peer, "in time").await;
}
