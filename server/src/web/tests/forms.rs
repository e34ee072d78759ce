//! Tests of forms that a browser without scripts posts.

use axum::body::Body;
use axum::http::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE, REFERER, SET_COOKIE};
use axum::http::{Request, StatusCode};
use domain::decision::StaffList;
use service::Actor;

use super::pages::faults;
use super::world::{STAFF_WITH_FACTOR, World, ask};

/// Posts a form from a page as a browser without scripts does. Returns the cookies that the browser
/// has then, and the page to which the form comes back.
async fn returned(
    world: &World,
    cookie: &str,
    (page, function): (&str, &str),
    form: String,
) -> (String, String) {
    let request = Request::post(function)
        .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
        .header(ACCEPT, "text/html")
        .header(CONTENT_LENGTH, form.len())
        .header(REFERER, format!("http://test{page}"));
    let answer = ask(&world.portal, request, Some(cookie.to_owned()), Body::from(form)).await;
    assert_eq!(answer.status(), StatusCode::FOUND);
    let kept = answer.headers().get_all(SET_COOKIE).into_iter();
    let kept = kept.filter_map(|kept| kept.to_str().ok()?.split(';').next());
    let kept: Vec<_> = kept.collect();
    // A form never makes a new session.
    let is_known = |set: &&str| set.starts_with("heliograph-form=") || **set == *cookie;
    assert!(kept.iter().all(is_known), "{kept:?}");
    let kept = kept.into_iter().find(|kept| kept.starts_with("heliograph-form=")).unwrap();
    assert!(kept.len() < 4000, "{}", kept.len());
    let cookies = format!("{cookie}; {kept}");
    let shown = world.page(page, &cookies).await;
    (cookies, shown)
}

#[tokio::test]
async fn a_refused_form_without_scripts_names_every_fault_and_keeps_long_texts() {
    let world = World::new().await;
    let cookie = world.sign_in("customer@example.org").await;
    let page = world.filled("/applications/{reference}/settings");
    let form = world.filled(
        "reference={reference}&traffic_pumping=alarm&leaked_key=alarm&per_recipient_hour=many\
         &spend_per_day=1,000&quiet_hours=21:00-08:00",
    );
    let (_, shown_page) = returned(&world, &cookie, (&page, "/fn/set-limits"), form).await;
    assert_eq!(shown_page.matches("aria-invalid=\"true\"").count(), 2, "{shown_page}");
    for text in [
        "Correct these fields: Messages to a recipient per hour, Spend per day.",
        "This must be a whole number from 1 to 1000000, or empty for no limit.",
        "This must be an amount above 0 like 1000.50",
        "value=\"1,000\"",
        "value=\"many\"",
        "value=\"21:00-08:00\"",
    ] {
        assert!(shown_page.contains(text), "{text}: {shown_page}");
    }

    let cookie = world.sign_in(STAFF_WITH_FACTOR).await;
    let page = world.filled("/support/accounts/{account}");
    let note = "A note that is much longer than it may be. ".repeat(200);
    let form = format!("id={}&text={}", world.account, note.replace(' ', "+"));
    let (cookies, shown_page) = returned(&world, &cookie, (&page, "/fn/add-note"), form).await;
    assert!(shown_page.contains(note.trim_end()), "{shown_page}");
    // It comes back once.
    let again = world.page(&page, &cookies).await;
    assert!(!again.contains("A note that is"), "{again}");
    let form = format!("id={}&text={}", world.account, note.repeat(5).replace(' ', "+"));
    let (_, shown_page) = returned(&world, &cookie, (&page, "/fn/add-note"), form).await;
    assert!(!shown_page.contains("A note that is"), "too long to keep: {shown_page}");

    // Strangers can't store text, whatever session they claim to have.
    let (name, _) = cookie.split_once('=').unwrap();
    let claimed = format!("{name}={}", tower_sessions::session::Id::default());
    let form = format!("email={}&new_password=x", "x".repeat(10_000));
    let (_, shown_page) = returned(&world, &claimed, ("/register", "/fn/register"), form).await;
    assert!(!shown_page.contains("xxxx"), "{shown_page}");
    world.service.close().await;
}

#[tokio::test]
async fn a_refused_list_comes_back_to_its_own_form() {
    let world = World::new().await;
    let cookie = world.sign_in(STAFF_WITH_FACTOR).await;
    let applications = world.service.applications();
    for (list, line) in [(StaffList::RejectReasons, "Unclear"), (StaffList::ReservedWords, "bank")]
    {
        applications.set_staff_list(&Actor::System, list, line).await.unwrap();
    }
    let long = "x".repeat(10_000);
    let of = |list: StaffList| format!("list={}&lines={long}", list.as_str());
    for (refused, others) in [
        (StaffList::RejectReasons, "\nbank</textarea>"),
        (StaffList::ReservedWords, "\nUnclear</textarea>"),
    ] {
        let page = ("/support/senders", "/fn/set-staff-list");
        let (_, shown) = returned(&world, &cookie, page, of(refused)).await;
        for text in [
            others,
            &format!("\n{long}</textarea>"),
            "class=\"alert\"",
            "id=\"problem-set-staff-list\"",
        ] {
            assert_eq!(shown.matches(text).count(), 1, "{text}: {shown}");
        }
        let (_, of_list) = shown.split_once(&format!("id=\"list-{}\"", refused.as_str())).unwrap();
        assert!(of_list.split('<').next().unwrap().contains(&long), "{shown}");
    }
    // Nobody knows which list was refused if its text is too long to keep.
    let page = ("/support/senders", "/fn/set-staff-list");
    let form = format!("list=reserved-words&lines={}", long.repeat(4));
    let (_, shown) = returned(&world, &cookie, page, form).await;
    assert_eq!(shown.matches("class=\"alert\"").count(), 2, "{shown}");
    assert_eq!(faults(&shown), Vec::<String>::new());
    world.service.close().await;
}
