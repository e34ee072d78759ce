//! Tests of what pages show.

use std::collections::BTreeSet;

use app::counter::COUNT_PATH;
use axum::body::Body;
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::http::{Request, StatusCode};
use service::Limits;

use super::TABLE;
use super::world::{STAFF_WITH_FACTOR, World, ask, html, post};

/// Posts a text as a browser without scripts does. Returns the page with the count.
async fn counted(world: &World, form: &str) -> String {
    let answer = post(&world.portal, COUNT_PATH, form, None).await;
    assert_eq!(answer.status(), StatusCode::OK);
    html(answer).await
}

#[tokio::test]
async fn a_posted_text_is_counted() {
    let world = World::new().await;
    let emoji = "%F0%9F%98%80".repeat(1_600);
    for (form, says) in [
        (
            "message=Hello&number=58+00+19+87".to_owned(),
            "(1 page at 0.05) to 58001987, a local number.",
        ),
        // A line break counts as one character, as it does for scripts.
        (
            "message=a%0D%0Ab&number=".to_owned(),
            "Left: 157 characters of this page, 157 places of this segment.",
        ),
        (
            "message=%D9%85%D8%B1&number=%2B999123".to_owned(),
            "an international number whose prefix has no price of its own.",
        ),
        (
            format!("message={emoji}&number=58001987"),
            "(10 pages at 0.05) to 58001987, a local number.",
        ),
        (format!("message={emoji}a&number="), "1 character more than 10 pages"),
        ("message=a%00b&number=".to_owned(), "The text has a NUL character"),
        (String::new(), "Write a text to see how it is counted."),
    ] {
        let page = counted(&world, &form).await;
        let start: String = form.chars().take(60).collect();
        assert!(page.contains(says), "{start}: {says}");
    }
    // Typed text is escaped, and stays in the fields.
    let page = counted(&world, "message=%3C/textarea%3E%3Cb%3E&number=%22%3E%3Cb%3E").await;
    assert!(page.contains("&lt;/textarea&gt;&lt;b&gt;"), "{page}");
    assert!(!page.contains("<b>"), "{page}");
    assert!(page.contains("value=\"&quot;&gt;&lt;b&gt;\""), "{page}");
    // A line break at the beginning is kept, although HTML parsers drop one.
    let page = counted(&world, "message=%0D%0A%26lt%3B").await;
    assert!(page.contains(">\n\n&amp;lt;</textarea>"), "{page}");
    world.service.close().await;
}

#[tokio::test]
async fn the_reference_has_every_call_and_an_anchor_for_every_reason() {
    let world = World::new().await;
    let page = world.page("/docs", "").await;
    for reason in domain::Reason::ALL {
        let anchor = format!("id=\"reason-{}\"", reason.as_str());
        assert_eq!(page.matches(&anchor).count(), 1, "{anchor}");
    }
    let document = crate::openapi::document("http://test", &Limits::default()).unwrap();
    let paths = document["paths"].as_object().unwrap();
    for (path, operations) in paths.iter().filter(|(path, _)| path.contains("{key}")) {
        for (method, operation) in operations.as_object().unwrap() {
            let id = operation["operationId"].as_str().unwrap();
            assert!(page.contains(&format!("id=\"call-{id}\"")), "{id}");
            let call = format!("{} {path}", method.to_uppercase());
            let call = call.replace("{key}", "&lt;API_KEY&gt;");
            assert!(page.contains(&call), "{call}");
            for parameter in operation["parameters"].as_array().into_iter().flatten() {
                let name = parameter["name"].as_str().unwrap();
                assert!(name == "key" || page.contains(&format!(">{name}<")), "{name}");
            }
        }
    }
    // Links lead to anchors on the page, and each ID occurs once.
    for link in page.split("href=\"#").skip(1) {
        let anchor = link.split('"').next().unwrap();
        let found = page.matches(&format!("id=\"{anchor}\"")).count();
        assert_eq!(found, 1, "{anchor}");
    }
    for snippet in [
        "curl --retry 3 http://test/sms/bulk/YOUR_KEY \\\n  --header ",
        "--form 'bulksms=@bulksms.txt'",
        "--form 'numbers=@numbers.txt'",
        "curl --retry 3 --get http://test/sms/send/YOUR_KEY \\\n  --header ",
        "--data-urlencode 'number=57000001' \\\n  --data-urlencode 'message=",
        ">query or body<",
        "The home country is Lesotho (+266).",
        "and no +: a local number in Lesotho (+266)",
        "curl --retry 3 http://test/sms/reports/YOUR_KEY/m_0000000000000",
    ] {
        assert!(page.contains(snippet), "{snippet}");
    }
    world.service.close().await;
}

#[tokio::test]
async fn a_receipt_names_the_customer() {
    let world = World::new().await;
    world.credit().await;
    let cookie = world.sign_in("customer@example.org").await;
    let form = "name=Acme+Ltd&address=Main+Street%0D%0AMaseru&tax_number=T-1";
    let saved = post(&world.portal, "/fn/set-billing-details", form, Some(cookie.clone())).await;
    assert!(saved.status().is_redirection() || saved.status().is_success());
    for path in ["/applications/{reference}/deposits/b2", "/applications/{reference}/statement"] {
        let page = world.page(&world.filled(path), &cookie).await;
        for text in ["Acme Ltd", "Main Street", "Maseru", "Tax number: T-1", "2.50"] {
            assert!(page.contains(text), "{path}: {text}: {page}");
        }
    }
    world.service.close().await;
}

/// Returns the values of an attribute on a page or in a tag.
fn values<'a>(page: &'a str, attribute: &str) -> Vec<&'a str> {
    let begin = format!(" {attribute}=\"");
    let after = page.split(&begin).skip(1);
    after.filter_map(|after| after.split('"').next()).collect()
}

/// Returns the IDs that a page has twice, and the hints that no field refers to.
pub fn faults(page: &str) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let ids = values(page, "id").into_iter();
    let twice = ids.filter(|id| !seen.insert(*id)).map(|id| format!("{id} twice"));
    let described = values(page, "aria-describedby");
    let described: Vec<_> = described.iter().flat_map(|ids| ids.split(' ')).collect();
    let paragraphs = page.split("<p").skip(1).filter_map(|after| after.split('>').next());
    // The others are announced when they change.
    let hints =
        paragraphs.filter(|tag| values(tag, "class") == ["hint"] && values(tag, "role").is_empty());
    let alone = hints.filter(|tag| !values(tag, "id").iter().any(|id| described.contains(id)));
    twice.chain(alone.map(|tag| format!("the hint {tag} of no field"))).collect()
}

#[tokio::test]
async fn no_page_has_an_id_twice_or_a_hint_of_no_field() {
    let world = World::new().await;
    world.credit().await;
    let mut found = Vec::new();
    for email in ["customer@example.org", STAFF_WITH_FACTOR] {
        let cookie = world.sign_in(email).await;
        for (method, path, arguments, _) in TABLE {
            if *method != "GET" || path.starts_with("/fn/") {
                continue;
            }
            let target = world.filled(&format!("{path}?{arguments}"));
            let request = Request::get(&target).header(ACCEPT, "text/html");
            let answer = ask(&world.portal, request, Some(cookie.clone()), Body::empty()).await;
            let kind = answer.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
            // The others are files and streams.
            if !kind.is_some_and(|kind| kind.starts_with("text/html")) {
                continue;
            }
            let faults = faults(&html(answer).await);
            found.extend(faults.into_iter().map(|fault| format!("{target}: {fault}")));
        }
    }
    world.service.close().await;
    assert!(found.is_empty(), "{found:#?}");
}
