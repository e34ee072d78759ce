//! A test clock that one node moves, and the other node that delivers.

use testing::client::{bare, encode};
use testing::harness::until;

use crate::cluster::Cluster;

const TWO_DAYS: i64 = 172_800;

#[test]
fn a_clock_moved_on_one_node_moves_on_the_others() {
    let cluster = Cluster::new(2, "");
    let keys = cluster.holding();
    for node in &cluster.nodes {
        node.start(&cluster.place, &[("HELIOGRAPH_SANDBOX_DELAY_MS", "3600000")]);
    }
    let test = keys.test.expose();
    let post = |node: usize, target: &str| {
        let address = cluster.nodes[node].address().unwrap();
        let answer = testing::client::exchange(&address, &bare("POST", target, &[]));
        answer.is(200, 200, "");
        answer.json()
    };
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let ms = i64::try_from(now.as_millis()).unwrap() + TWO_DAYS * 1000;
    let sendat = encode(&domain::Timestamp::from_unix_ms(ms).to_string());
    let send = |more: &str| {
        let sent = post(1, &format!("/sms/send/{test}?number=57000001&message=Hi{more}"));
        sent["transid"].as_str().unwrap().to_owned()
    };
    let (at_once, scheduled) = (send(""), send(&format!("&sendat={sendat}")));
    let reaches = |transid: &str, status: &str| {
        let target = format!("/sms/reports/{test}/{transid}");
        until(status, || {
            let report = cluster.nodes[0].get(&target).json()["report"].clone();
            (report["status"] == status).then_some(())
        });
    };
    reaches(&at_once, "submitted");
    // The second node submitted it, and its sandbox delivers after an hour. The first node
    // moves the clock.
    post(0, &format!("/sms/test/clock/{test}?advance={}", TWO_DAYS - 3600));
    reaches(&at_once, "delivered");
    reaches(&scheduled, "scheduled");
    post(0, &format!("/sms/test/clock/{test}?advance=3600"));
    reaches(&scheduled, "submitted");
    cluster.stop();
}
