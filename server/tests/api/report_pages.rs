//! The report pages in a browser without scripts.

use crate::harness::TestServer;
use crate::portal::Browser;

/// Returns a page's HTML, without the markers for its scripts.
fn page(browser: &mut Browser, target: &str) -> String {
    let answer = browser.get(target);
    assert_eq!(answer.status, 200, "{target}: {}", answer.text());
    let text = answer.text().replace("<!>", "");
    text.replace("&amp;", "&").replace("%2D", "-")
}

/// Returns the address of the link with this text.
fn link(page: &str, words: &str) -> Option<String> {
    let end = page.find(&format!(">{words}</a>"))?;
    let (_, tag) = page[..end].rsplit_once("<a ")?;
    let (_, address) = tag.split_once("href=\"")?;
    Some(address.split_once('"')?.0.to_owned())
}

/// Sends a message, waits until it is final, and returns its transaction ID.
fn settled(server: &TestServer, key: &str, number: &str, text: &str) -> String {
    let answer = server.send(key, &[("number", number), ("message", text)]);
    assert_eq!(answer.status, 200, "{}", answer.text());
    let transid = answer.json()["transid"].as_str().unwrap().to_owned();
    server.final_report(key, &transid);
    transid
}

#[test]
fn filters_are_chips_that_can_be_removed() {
    let server = TestServer::demo();
    settled(&server, server.key(), "58001987", "live");
    settled(&server, server.test_key(), "58001987", "tried");
    settled(&server, server.key(), "58001988", "another");
    let mut browser = Browser::of_customer(&server);

    for number in ["26658001987", "%2B266+58001987"] {
        let found = page(&mut browser, &format!("/reports?number={number}&key=live"));
        assert!(found.contains(">live</span>") && !found.contains(">another</span>"), "{found}");
    }
    let found = page(&mut browser, "/reports?number=58+00+19-87&key=live");
    assert!(found.contains(">live</span>") && !found.contains(">tried</span>"), "{found}");
    assert!(!found.contains(">another</span>"), "{found}");
    assert!(found.contains(">Number: 58 00 19-87</span>"), "{found}");
    assert!(found.contains("href=\"/reports?key=live\""), "{found}");
    assert!(found.contains("1 message fits these filters."), "{found}");

    let tried = page(&mut browser, "/reports?key=test");
    assert!(tried.contains(">tried</span>") && !tried.contains(">live</span>"), "{tried}");
    assert!(tried.contains("test messages by day sent (UTC)"), "{tried}");
    assert!(tried.contains("1 message by day and status"), "{tried}");
    // Without a filter, the chart counts live messages and the list has all messages.
    let all = page(&mut browser, "/reports");
    assert!(all.contains("2 messages by day and status"), "{all}");
    // The tab order follows what a narrow screen shows: the switch, the chart, the messages.
    let place = |what: &str| all.find(what).unwrap_or_else(|| panic!("{what}: {all}"));
    let places = ["id=\"chart-shown\"", "class=\"chart-section\"", "id=\"messages\""].map(place);
    assert!(places.is_sorted(), "{places:?}");
    assert!(all.contains(">3 messages. "), "{all}");
    let days = link(&all, "7 days").unwrap();
    assert!(days.starts_with("/reports?from=20"), "{days}");
    assert!(page(&mut browser, &days).contains(">live</span>"));

    let file = browser.get("/reports/messages.csv?key=test").text();
    assert_eq!(file.matches("58001987").count(), 1, "{file}");
}

#[test]
fn days_in_the_wrong_order_are_refused_beside_the_field() {
    let server = TestServer::empty();
    let mut browser = Browser::registered(&server, "order@example.org");
    let answer = browser.get("/reports?from=2026-11-22&to=2026-11-21");
    assert_eq!(answer.status, 400);
    let text = answer.text();
    let (_, field) = text.split_once("name=\"to\"").unwrap();
    assert!(field.contains("To is a day before From."), "{text}");
    assert!(!text.contains("No message"), "{text}");
    assert!(text.contains("try again"), "{text}");
    assert_eq!(browser.get("/reports?key=x").status, 400);
    assert_eq!(browser.get("/reports?application=999999").status, 404);
}

#[test]
fn a_list_leads_to_older_and_newer_pages() {
    let server = TestServer::demo();
    for place in 0..120 {
        let number = format!("57{place:06}");
        server.accepted(server.test_key(), &number);
    }
    let mut browser = Browser::of_customer(&server);
    let first = page(&mut browser, "/reports");
    assert!(first.contains(">120 messages. "), "{first}");
    assert_eq!(link(&first, "Newer messages"), None);
    let second = page(&mut browser, &link(&first, "Older messages").unwrap());
    assert!(second.contains(">57000069<") && second.contains(">57000020<"), "{second}");
    assert_eq!(link(&second, "Newer messages").unwrap(), "/reports#messages");
    assert_eq!(link(&second, "Newest messages"), None);
    let third = page(&mut browser, &link(&second, "Older messages").unwrap());
    assert!(third.contains(">57000019<") && third.contains(">57000000<"), "{third}");
    assert_eq!(link(&third, "Older messages"), None);
    assert_eq!(link(&third, "Newest messages").unwrap(), "/reports#messages");
    let back = page(&mut browser, &link(&third, "Newer messages").unwrap());
    assert!(back.contains(">57000069<") && back.contains(">57000020<"), "{back}");
}

#[test]
fn what_was_given_back_is_no_cost() {
    let server = TestServer::demo();
    let rejected = settled(&server, server.key(), "00000004", "Refused");
    let batchid = server.accepted_batch(server.key(), "00000001\n00000004");
    server.done_batch(server.key(), &batchid);
    let mut browser = Browser::of_customer(&server);

    let list = page(&mut browser, "/reports");
    let cost = "data-label=\"Cost\" class=\"amount\">";
    assert_eq!(list.matches(&format!("{cost}0.00<")).count(), 2, "{list}");
    // The delivered message and the batch.
    assert_eq!(list.matches(&format!("{cost}0.05<")).count(), 2, "{list}");
    assert!(list.contains("Delivery rate: 33.3 %"), "{list}");

    let message = page(&mut browser, &format!("/reports/{rejected}"));
    assert!(message.contains("<dt>Paid</dt><dd class=\"figures\">0.00 USD</dd>"), "{message}");
    assert!(message.contains("<h2>What to do</h2>"), "{message}");
    let application = format!("href=\"/applications/{}\"", server.reference());
    assert!(message.contains(&application), "{message}");

    let batch = page(&mut browser, &format!("/reports/{batchid}"));
    assert!(
        batch.contains("The batch reserved 0.10 USD. You aren")
            && batch.contains("t charged 0.05 USD of that"),
        "{batch}"
    );
    assert!(batch.contains("2 of 2 completed"), "{batch}");
    assert!(batch.contains(&application), "{batch}");
    let target = format!("/reports?batchid={batchid}&status=rejected");
    assert!(batch.contains(&target), "{batch}");
    let found = page(&mut browser, &target);
    assert!(found.contains(">00000004<") && !found.contains(">00000001<"), "{found}");
    // If the filter names a batch, the batch comes before its messages.
    let found = page(&mut browser, &format!("/reports?batchid={batchid}"));
    assert!(found.find("id=\"batches\"") < found.find("id=\"messages\""));
}

#[test]
fn a_text_shows_its_segments_and_what_keeps_it_out_of_gsm_7() {
    let server = TestServer::demo();
    let text = format!("’{}", "a".repeat(160));
    let transid = settled(&server, server.key(), "00000001", &text);
    let mut browser = Browser::of_customer(&server);
    let message = page(&mut browser, &format!("/reports/{transid}"));
    assert!(message.contains("<mark>’</mark>"), "{message}");
    for words in ["segment 1 ends", "segment 2 ends", "page 1 ends"] {
        assert!(message.contains(&format!("data-cut=\"{words}\"")), "{words}");
    }
    assert!(message.contains("“’” (U+2019) isn't in GSM-7"), "{message}");
    assert!(message.contains("The carrier sandbox accepted it."), "{message}");
    assert!(message.contains("It arrived on the phone."), "{message}");
}

#[test]
fn the_chart_leads_to_the_messages_of_a_day() {
    let server = TestServer::demo();
    let transid = settled(&server, server.key(), "00000001", "Counted");
    let report = server.report(server.key(), &transid);
    let day = &report["created_at"].as_str().unwrap()[..10];
    let mut browser = Browser::of_customer(&server);
    let all = page(&mut browser, "/reports");
    let target = format!("/reports?key=live&from={day}&to={day}#messages");
    assert_eq!(link(&all, day).unwrap(), target);
    assert!(page(&mut browser, &target).contains(">Counted</span>"));

    let kind = link(&all, "Messages by application").unwrap();
    let by_application = page(&mut browser, &kind);
    assert!(by_application.contains("1 message by day and application"));
    assert!(by_application.contains(&format!(">{}</a>", server.reference())));
    let cost = page(&mut browser, &link(&all, "Cost by application").unwrap());
    assert!(cost.contains("0.05 USD by day and application"), "{cost}");
    let times = page(&mut browser, &link(&all, "Delivery times").unwrap());
    assert!(times.contains("half of the delivered messages arrived within"), "{times}");
    assert!(times.contains("aria-label=\"Delivery times\""), "{times}");
}

#[test]
fn the_chart_of_a_day_leads_to_the_messages_of_an_hour() {
    let server = TestServer::demo();
    let transid = settled(&server, server.key(), "00000001", "Counted");
    let report = server.report(server.key(), &transid);
    let created_at = report["created_at"].as_str().unwrap();
    let (day, hour) = (&created_at[..10], &created_at[11..13]);
    let mut browser = Browser::of_customer(&server);
    let of_day = page(&mut browser, &format!("/reports?from={day}&to={day}"));
    assert!(of_day.contains("1 message by hour and status"), "{of_day}");
    let target = link(&of_day, &format!("{day} {hour}:00")).unwrap();
    let of_hour = page(&mut browser, &target);
    assert!(of_hour.contains(">Counted</span>"), "{of_hour}");
    assert!(of_hour.contains("1 message fits these filters."), "{of_hour}");
    let other = (hour.parse::<u8>().unwrap() + 1) % 24;
    let path = format!("/reports?from={day}&to={day}&hour={other}");
    let others = page(&mut browser, &path);
    assert!(!others.contains(">Counted</span>"), "{others}");
    // An hour without a day is ignored.
    let without_day = page(&mut browser, "/reports?hour=7");
    assert!(without_day.contains(">Counted</span>"), "{without_day}");
    let no_hour = browser.get(&format!("/reports?from={day}&hour=24"));
    assert_eq!(no_hour.status, 400);
    let sentence = "An hour is a number from 0 to 23";
    assert!(no_hour.text().contains(sentence));
}
