use axum::http::header::COOKIE;

use super::*;
use crate::web::tests::service_in;

#[tokio::test]
async fn a_form_comes_back_in_its_time_and_to_its_page() {
    let folder = tempfile::tempdir().unwrap();
    let (service, _) = service_in(&folder).await;
    let forms =
        Forms { service: service.clone(), key: "key".into(), base_url: "http://test".into() };
    let form = ReturnedForm { function: "/fn/sign-in".to_owned(), problem: Cause::Email.into() };
    let now_ms = service.clock().now().unix_ms();
    for (cookie, age_ms, page, comes_back) in [
        (&REFUSED, 0, "/login", true),
        (&REFUSED, 50_000, "/login", true),
        (&REFUSED, 61_000, "/login", false),
        (&REFUSED, 0, "/login?next=%2F", false),
        (&REFUSED, 0, "/", false),
        (&SIGNED_OUT, 590_000, "/login", true),
        (&SIGNED_OUT, 601_000, "/login", false),
        (&SIGNED_OUT, 0, "/", false),
    ] {
        let at_ms = now_ms - age_ms;
        let sealed = Sealed { at_ms, account_id: None, is_long: false, form: form.clone() };
        let text = forms.seal(cookie, &sealed, "/login").unwrap();
        let opened = |cookie: &FormCookie, name: &str| {
            let request = Request::get(page)
                .header(COOKIE, format!("other=x; {name}={text}"))
                .body(Body::empty())
                .unwrap();
            forms.opened(cookie, &request).map(|sealed| sealed.form)
        };
        let expected = comes_back.then(|| form.clone());
        assert_eq!(opened(cookie, cookie.name), expected, "{age_ms} {page}");
        for (other, name) in [(&REFUSED, SIGNED_OUT.name), (&SIGNED_OUT, REFUSED.name)] {
            assert_eq!(opened(other, name), None);
            if other.name != cookie.name {
                assert_eq!(opened(other, other.name), None, "a cookie under another name");
            }
        }
    }
    let posted = b"text=It+is+down&carrier=&password=x&credential=123456&code=1";
    let problem = form.problem.clone().typed("deposit", "").typed("text", "");
    let form = ReturnedForm { problem, ..form };
    let cookie = forms.keep(&form, posted, "/login", 7).await.unwrap();
    let request = Request::get("/login").header(COOKIE, cookie).body(Body::empty()).unwrap();
    let kept = forms.opened(&SIGNED_OUT, &request).unwrap();
    let typed = [("text", "It is down"), ("carrier", ""), ("deposit", "")];
    assert_eq!(kept.form.problem.typed, typed.map(|(a, b)| (a.to_owned(), b.to_owned())));
    assert_eq!(kept.account_id, Some(7));
    // The longest note fits into the cookie.
    let posted = format!("text={}", "x".repeat(2000));
    let cookie = forms.keep(&form, posted.as_bytes(), "/login", 7).await.unwrap();
    assert!(cookie.len() < 4096, "{}", cookie.len());
    let request = Request::get("/login").header(COOKIE, cookie).body(Body::empty()).unwrap();
    let kept = forms.opened(&SIGNED_OUT, &request).unwrap().form.problem;
    assert_eq!(kept.text_of("text").map(|text| text.len()), Some(2000));
    service.close().await;
}
