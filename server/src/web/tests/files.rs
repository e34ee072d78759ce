//! Tests of the page that checks files.

use std::sync::Arc;

use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::http::{Request, StatusCode};
use domain::limits::LimitsChange;
use domain::{KeyKind, LimitField, Reference};

use super::world::{World, ask, html};

/// Returns a multipart form with these fields, and without its end.
fn open_form(fields: &[(&str, &[u8])]) -> Vec<u8> {
    let mut form = Vec::new();
    for (name, content) in fields {
        let head = format!(
            "--cut\r\nContent-Disposition: form-data; name=\"{name}\"; filename=\"f.csv\"\r\n\r\n"
        );
        form.extend_from_slice(head.as_bytes());
        form.extend_from_slice(content);
        form.extend_from_slice(b"\r\n");
    }
    form
}

impl World {
    /// Posts a file to the page that checks files.
    async fn check_file(&self, kind: &str, cookie: &str, body: Body) -> (StatusCode, String) {
        let path = format!("/applications/{}/check-file{kind}", self.reference);
        let request = Request::post(path).header(CONTENT_TYPE, "multipart/form-data; boundary=cut");
        let answer = ask(&self.portal, request, Some(cookie.to_owned()), body).await;
        let status = answer.status();
        (status, html(answer).await)
    }

    /// Checks a file. Returns the text of the page, without tags.
    async fn checked(&self, kind: &str, fields: &[(&str, &[u8])]) -> String {
        let cookie = self.sign_in("customer@example.org").await;
        let form = [open_form(fields), b"--cut--\r\n".to_vec()].concat();
        // A busy server finds all of a form there when it first reads it.
        let (status, page) = self.check_file(kind, &cookie, Body::from(form)).await;
        assert_eq!(status, StatusCode::OK);
        let main = page.split("<main").nth(1).and_then(|main| main.split("</main>").next());
        let mut text = String::new();
        for part in main.unwrap().split('<').skip(1) {
            text.push_str(part.split_once('>').unwrap().1);
            text.push(' ');
        }
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

#[tokio::test]
async fn a_file_is_checked_and_nothing_is_kept() {
    let world = World::new().await;
    let access = {
        let reference = Reference::parse(&world.reference).unwrap();
        world.service.webhooks().access_of(world.account, reference, KeyKind::Live).await.unwrap()
    };
    let number = domain::Number::parse("57000003").unwrap();
    let (change, author) = (service::OptOutChange::Add(number), service::OptOutAuthor::Program);
    let applications = world.service.applications();
    applications.change_opt_outs(&access, change, author, None).await.unwrap();
    let long = "a".repeat(161);
    let file = format!(
        "57000001,Hi\n+26657000001,{long}\n57000002,\"a\nb\"\n057000009,c\n57000003,d\n57000002,e\n"
    );
    let page = world.checked("", &[("bulksms", file.as_bytes())]).await;
    for says in [
        "The file has 6 rows, and none is bad.",
        "Local 4 4 0.20 International 2 3 0.75 Total 6 7 0.95",
        "Your balance is 0.00 USD, so 0.95 USD are missing.",
        "1 The number is the country code 266 and 8 digits. Without the code it is local, and \
         costs less. 2 looks_local",
        "1 The number begins with 0, but no country code does. 5 leading_zero",
        "1 The number has 7 or 9 digits, where a local number has 8. 5 near_local",
        // +26657000001 is the number in the first line.
        "2 An earlier row has the same number. The recipient gets both messages, and you pay for \
         both. 2, 7",
        "The price of these rows, 0.05 USD, is reserved with the others and then released. 6 \
         opted_out",
    ] {
        assert!(page.contains(says), "{says}: {page}");
    }
    let many = "57000001\n".repeat(7);
    let fields = [("message", "a\r\nb".as_bytes()), ("numbers", many.as_bytes())];
    let page = world.checked("?file=numbers", &fields).await;
    assert!(page.contains("The file has 7 rows, and none is bad."), "{page}");
    assert!(page.contains("2, 3, 4, 5, 6 …") && page.contains("Total 7 7 0.35"), "{page}");
    assert!(page.contains("a b File"), "the message stays in its field: {page}");
    let fields = [("message", "a".repeat(1_601)), ("numbers", many)];
    let fields = fields.each_ref().map(|(name, text)| (*name, text.as_bytes()));
    let page = world.checked("?file=numbers", &fields).await;
    assert!(page.contains("The message has more than 1600 characters. Shorten it."), "{page}");
    let page = world.checked("", &[]).await;
    assert!(page.contains("Choose a file."), "{page}");
    let mut change = LimitsChange::default();
    change.add(LimitField::SpendPerDay, "0.1").unwrap();
    let author = service::LimitsAuthor::Owner(world.account);
    let reference = Reference::parse(&world.reference).unwrap();
    applications.change_limits(reference, author, change).await.unwrap();
    let page = world.checked("", &[("bulksms", file.as_bytes())]).await;
    assert!(page.contains("today's limit of 0.10 USD doesn't leave enough for it"), "{page}");
    let left = world.service.applications().of_account(world.account).await.unwrap();
    let messages = service::MessageFilter { limit: 9, ..Default::default() };
    let messages = world.service.messages().account_messages(world.account, None, &messages).await;
    assert_eq!((left.len(), messages.unwrap().items.len()), (1, 1), "those of World::new");
    world.service.close().await;
}

#[tokio::test]
async fn a_file_that_cannot_be_read_is_explained() {
    let world = World::new().await;
    let utf16: Vec<u8> =
        "\u{feff}57000001,Hi\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    for (file, says) in [
        (
            &utf16[..],
            &["We can't read this file.", "The file is written in UTF-16", "1: 57000001,Hi"][..],
        ),
        (b"PK\x03\x04\x14\0\x06\0", &["workbook (.xlsx or .ods)", "CSV UTF-8 (Comma delimited)"]),
        (
            b"Number;Text\r\n57000001;caf\xe9\r\n57000002;a\r\n57000003;b\r\n57000004,c",
            &[
                "The file has 5 rows, and 4 are bad. The API would refuse the whole file, and",
                "The first line starts with words, as header lines do",
                "probably Windows-1252",
                "between number and message. (3 rows, the first in line 2)",
                "2: 57000001;café 3: 57000002;a",
                "Total 1 1 0.05",
                "Quote all text cells",
                "Google Sheets",
            ],
        ),
        (b"57000001,a\r57000002,b\r", &["(Macintosh)", "1: 57000001,a␍57000002,b"]),
        (
            b"5.7E+07,a\n",
            &["A spreadsheet wrote the number with an exponent", "1: 5.7E+07,a", "as text before"],
        ),
        (b"", &["The file is empty."]),
        (b"\xef\xbb\xbf\r\n\n", &["The file is empty."]),
    ] {
        let page = world.checked("", &[("bulksms", file)]).await;
        for says in says {
            assert!(page.contains(says), "{says}: {page}");
        }
    }
    let bad = "x\n".repeat(30);
    let page = world.checked("", &[("bulksms", bad.as_bytes())]).await;
    assert!(page.contains("These are the first 20."), "{page}");
    let many = "1111\n".repeat(1_000_001);
    let fields = [("message", &b"Hi"[..]), ("numbers", many.as_bytes())];
    let page = world.checked("?file=numbers", &fields).await;
    assert!(page.contains("The file has more than 1000000 rows. Split it"), "{page}");
    world.service.close().await;
}

#[tokio::test]
async fn an_application_checks_two_files_at_once() {
    let world = Arc::new(World::new().await);
    let cookie = world.sign_in("customer@example.org").await;
    let checks: Vec<_> = (0..2)
        .map(|_| {
            let (begun, is_begun) = tokio::sync::oneshot::channel();
            let mut begun = Some(begun);
            let mut pieces =
                vec![b"57000002,Hi\n".to_vec(), open_form(&[("bulksms", b"57000001,Hi")])];
            // Asks for a third piece once the form and the file have begun.
            let stream = futures_util::stream::poll_fn(move |_| {
                if let Some(piece) = pieces.pop() {
                    return std::task::Poll::Ready(Some(Ok::<_, std::io::Error>(piece)));
                }
                if let Some(begun) = begun.take() {
                    begun.send(()).unwrap();
                }
                std::task::Poll::Pending
            });
            let (world, cookie) = (Arc::clone(&world), cookie.clone());
            let body = Body::from_stream(stream);
            let check = tokio::spawn(async move { world.check_file("", &cookie, body).await });
            (check, is_begun)
        })
        .collect();
    let mut tasks = Vec::new();
    for (check, is_begun) in checks {
        is_begun.await.unwrap();
        tasks.push(check);
    }
    let form = [open_form(&[("bulksms", b"57000001,Hi")]), b"--cut--\r\n".to_vec()].concat();
    let (status, page) = world.check_file("", &cookie, Body::from(form.clone())).await;
    assert_eq!(status, StatusCode::TOO_MANY_REQUESTS);
    assert!(page.contains("2 files of this application are being checked."), "{page}");
    let ended = tasks.pop().unwrap();
    ended.abort();
    assert!(ended.await.unwrap_err().is_cancelled());
    let (status, page) = world.check_file("", &cookie, Body::from(form)).await;
    assert!(status == StatusCode::OK && page.contains("The file has 1 row, "), "{page}");
    tasks.pop().unwrap().abort();
    world.service.close().await;
}
