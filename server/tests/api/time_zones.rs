//! The time zone in which pages show times.

use domain::Timestamp;

use crate::client::Answer;
use crate::harness::TestServer;
use crate::portal::{Browser, location};

/// Returns a page's HTML, without the markers for its scripts.
fn page(browser: &mut Browser<'_>, target: &str) -> String {
    let answer = browser.get(target);
    assert_eq!(answer.status, 200, "{target}: {}", answer.text());
    answer.text().replace("<!>", "")
}

/// Reports a time zone like the browser's script does.
fn told(browser: &mut Browser<'_>, name: &str) -> Answer {
    browser.ask("tell-time-zone", &[("time_zone", name)])
}

/// Sends a message. Returns the path of its page, and when it was accepted.
fn message(server: &TestServer) -> (String, Timestamp) {
    let fields = [("number", "58001987"), ("message", "Hello")];
    let sent = server.send(server.key(), &fields).json();
    let transid = sent["transid"].as_str().unwrap();
    let report = server.final_report(server.key(), transid);
    let at = report["created_at"].as_str().unwrap();
    (format!("/reports/{transid}"), Timestamp::parse(at).unwrap())
}

/// Returns the text with which a page shows a time, in a zone without summer time.
fn shown(at: Timestamp, minutes: i64, zone: &str) -> String {
    let utc = at.to_table();
    let local = at.plus_ms(minutes * 60_000).to_table();
    format!(
        "<time datetime=\"{at}\" title=\"{utc} UTC\">{local} {zone}\
         <span class=\"visually-hidden\">, {utc} UTC</span></time>"
    )
}

#[test]
fn times_are_utc_until_the_browser_tells_its_zone() {
    let server = TestServer::demo();
    let (path, at) = message(&server);
    let mut browser = Browser::of_customer(&server);
    let in_utc = format!("<time datetime=\"{at}\">{}</time>", at.to_table());
    for target in ["/reports", &path] {
        let page = page(&mut browser, target);
        assert!(page.contains(&in_utc), "{page}");
        assert!(page.contains("Times are UTC."), "{page}");
    }
    assert!(page(&mut browser, "/reports").contains("Time (UTC)"));
    assert!(page(&mut browser, &path).contains("<h2>Timeline (UTC)</h2>"));

    let zone = told(&mut browser, "Asia/Katmandu").json();
    assert_eq!(zone["name"], "Asia/Katmandu");
    let in_kathmandu = shown(at, 345, "UTC+5:45");
    for target in ["/reports", &path] {
        let page = page(&mut browser, target);
        assert!(page.contains(&in_kathmandu), "{page}");
        assert!(page.contains("Times are in the time zone Asia/Katmandu."), "{page}");
        for heading in [">Time (UTC)<", ">Timeline (UTC)<"] {
            assert!(!page.contains(heading), "{page}");
        }
    }
    assert!(page(&mut browser, &path).contains("<h2>Timeline</h2>"));
    // The browser keeps the zone after signing out.
    browser.post("sign-out", &[]);
    assert!(page(&mut browser, "/login").contains("the time zone Asia/Katmandu."));
}

#[test]
fn the_accounts_zone_goes_before_the_browsers() {
    let server = TestServer::demo();
    let (path, at) = message(&server);
    let mut browser = Browser::of_customer(&server);
    told(&mut browser, "Asia/Kathmandu");
    let answer = browser.post("set-time-zone", &[("time_zone", "Africa/Nairobi")]);
    assert_eq!(location(&answer), "/account?time-zone=1");
    let account = page(&mut browser, "/account?time-zone=1");
    assert!(account.contains("The time zone is saved."), "{account}");
    let option = "<option value=\"Africa/Nairobi\" selected>";
    assert!(account.contains(option), "{account}");
    let in_nairobi = shown(at, 180, "EAT");
    for target in ["/reports", &path] {
        assert!(page(&mut browser, target).contains(&in_nairobi), "{target}");
    }
    let export = browser.get("/account/export.json").json();
    assert_eq!(export["account"]["time_zone"], "Africa/Nairobi");

    // The zone belongs to the account in every browser, from the first page after the sign-in.
    let mut other = Browser::of_customer(&server);
    assert!(page(&mut other, "/reports").contains(&in_nairobi));
    let answer = other.ask("set-time-zone", &[("time_zone", "Africa/Nowhere")]);
    assert_eq!(answer.json()["cause"]["Refused"], "TimeZoneUnknown");
    assert!(page(&mut other, &path).contains(&in_nairobi));
    other.post("set-time-zone", &[("time_zone", "UTC")]);
    assert!(page(&mut browser, "/reports").contains("Time (UTC)"));
    other.post("set-time-zone", &[("time_zone", "")]);
    assert!(page(&mut other, "/reports").contains("Time (UTC)"));
    assert!(page(&mut browser, "/reports").contains(&shown(at, 345, "UTC+5:45")));
}

#[test]
fn a_name_that_is_no_zones_counts_as_none() {
    let server = TestServer::empty();
    let mut browser = Browser::registered(&server, "first@example.org");
    for name in ["Etc/Unknown", "", "Europe/Berlin; Path=/x", &"x".repeat(5000)] {
        let answer = told(&mut browser, name);
        assert_eq!(answer.json()["name"], "UTC", "{name}");
        assert_eq!(browser.time_zone, None, "{name}");
    }
    for cookie in ["Europe/Nowhere", "%00", "\"", "Berlin</script>"] {
        browser.time_zone = Some(format!("heliograph-time-zone={cookie}"));
        let devices = page(&mut browser, "/devices");
        assert!(devices.contains("Last seen (UTC)"), "{cookie}");
        assert!(!devices.contains("Berlin</script>"), "{devices}");
    }
    // The browser's zone is stored from then on, and its cookie is set once.
    assert_eq!(told(&mut browser, "Europe/Berlin").json()["name"], "Europe/Berlin");
    let cookie = browser.time_zone.clone();
    assert_eq!(cookie.as_deref(), Some("heliograph-time-zone=Europe/Berlin"));
    let again = told(&mut browser, "Europe/Berlin");
    assert_eq!(again.header("set-cookie"), None);
}

#[test]
fn staff_see_utc_on_their_pages() {
    let server = TestServer::demo();
    let mut staff = Browser::of_staff(&server);
    told(&mut staff, "Asia/Kathmandu");
    let audit = page(&mut staff, "/support/audit");
    assert!(audit.contains("Time (UTC)") && audit.contains("Times are UTC."), "{audit}");
    assert!(!audit.contains("UTC+5:45<"), "{audit}");
    let devices = page(&mut staff, "/devices");
    assert!(devices.contains("UTC+5:45<"), "{devices}");
    let reports = page(&mut staff, "/reports");
    assert!(reports.contains("by day sent (Asia/Kathmandu)"), "{reports}");
}

#[test]
fn reports_count_and_list_by_the_days_and_hours_of_the_zone() {
    let server = TestServer::demo();
    let answer = server.send(server.key(), &[("number", "00000001"), ("message", "Timed")]);
    let transid = answer.json()["transid"].as_str().unwrap().to_owned();
    let report = server.final_report(server.key(), &transid);
    let created_at = Timestamp::parse(report["created_at"].as_str().unwrap()).unwrap();
    let mut browser = Browser::of_customer(&server);
    told(&mut browser, "Pacific/Kiritimati");
    // The zone is 14 hours ahead.
    let local = created_at.plus_ms(14 * 3_600_000);
    let (day, hour) = (local.to_date(), &local.to_string()[11..13]);
    let path = format!("/reports?from={day}&to={day}");
    let of_day = page(&mut browser, &path);
    assert!(of_day.contains("1 message by hour and status"), "{of_day}");
    assert!(of_day.contains(&format!("{day} {hour}:00")), "{of_day}");
    assert!(of_day.contains("Delivery rate: 100.0 %"), "{of_day}");
    let all = page(&mut browser, "/reports");
    assert!(all.contains("1 message by day and status"), "{all}");
    let of_hour = page(&mut browser, &format!("{path}&hour={hour}"));
    assert!(of_hour.contains(">Timed</span>"), "{of_hour}");
    let before = local.plus_ms(-24 * 3_600_000).to_date();
    let none = page(&mut browser, &format!("/reports?from={before}&to={before}"));
    assert!(!none.contains(">Timed</span>"), "{none}");
    assert!(none.contains("No messages in these days."), "{none}");
    let csv = browser.get(&format!("/reports/messages.csv?from={before}&to={before}"));
    assert!(!csv.text().contains(&transid), "{}", csv.text());
    let csv = browser.get(&format!("/reports/messages.csv?from={day}&to={day}"));
    assert!(csv.text().contains(&transid), "{}", csv.text());
}

/// Returns the first day of a link's range.
fn first_day(page: &str, words: &str) -> String {
    let end = page.find(&format!("{words}</a>")).unwrap();
    let from = page[..end].rfind("from=").unwrap();
    page[from + 5..from + 15].to_owned()
}

#[test]
fn today_is_the_day_of_the_zone() {
    let server = TestServer::empty();
    let mut browser = Browser::registered(&server, "first@example.org");
    let mut today = |zone: &str| {
        told(&mut browser, zone);
        let page = page(&mut browser, "/reports").replace("%2D", "-");
        Timestamp::parse_typed(&first_day(&page, "Today")).unwrap().day()
    };
    // The two zones are 25 hours apart, so their dates always differ.
    let (west, east) = (today("Pacific/Pago_Pago"), today("Pacific/Kiritimati"));
    assert!([1, 2].contains(&(east - west)), "{west} {east}");
}
