//! Tests of the limits of an application: who used its keys, what limits refuse, and alarms.

use domain::{Category, Email, Money, Password, Reason};
use service::{Actor, DepositRequest, Origin, SANDBOX_CARRIER, SendRequest, StartOf, StartRequest};

use super::world::{PASSWORD, World, post};

/// Creates a new account with an application for SMS, and signs in.
async fn shop(world: &World, sender: Option<&str>) -> (service::NewApplication, String) {
    let email = Email::parse("shop@example.org").unwrap();
    let password = Password::parse(PASSWORD).unwrap();
    let accounts = world.service.accounts();
    let account = accounts.add_account(&Actor::System, &email, &password, false).await.unwrap();
    let sender = sender.map(|name| domain::SenderName::parse(name).unwrap());
    let applications = world.service.applications();
    let creating = applications.create_application(account.id, Category::Sms, sender.as_ref());
    (creating.await.unwrap(), world.sign_in("shop@example.org").await)
}

/// Like [`shop`], with an Active application that has sent six messages to a number.
async fn sending_shop(world: &World) -> (service::NewApplication, String) {
    let (new, cookie) = shop(world, None).await;
    world.service.applications().approve(&Actor::System, new.reference).await.unwrap();
    let deposit = DepositRequest {
        bank_id: "b3".to_owned(),
        reference: new.reference.to_string(),
        amount: Money::from_micros(1_000_000),
    };
    world.service.money().add_deposit(&Actor::System, &deposit).await.unwrap();
    for _ in 0..6 {
        let send = SendRequest {
            key: new.live_key.clone(),
            number: domain::Number::parse("57000001").unwrap(),
            message: domain::MessageText::parse("Hi".to_owned(), 1).unwrap(),
            requestid: None,
            schedule: domain::Schedule::default(),
            idempotency: None,
            dry_run: false,
            origin: Origin::default(),
        };
        world.service.messages().send(send).await.unwrap();
    }
    (new, cookie)
}

#[tokio::test]
async fn the_addresses_that_used_a_key_can_be_filled_into_the_limits() {
    let world = World::new().await;
    let applications = world.service.applications();
    let (new, cookie) = shop(&world, Some("Shop")).await;
    for address in ["192.0.2.7", "2001:db8::1"] {
        applications.note_key_use(&new.live_key, Some(address.parse().unwrap()));
    }
    applications.store_key_uses().await.unwrap();
    let settings = format!("/applications/{}/settings", new.reference);
    let link = format!("{settings}?addresses=192.0.2.7%2C2001%3Adb8%3A%3A1#limits");
    let keys = world.page(&format!("/applications/{}/keys", new.reference), &cookie).await;
    assert!(keys.contains(&format!("href=\"{link}\"")), "{keys}");
    let filled = world.page(link.trim_end_matches("#limits"), &cookie).await;
    assert!(filled.contains("value=\"192.0.2.7, 2001:db8::1\""), "{filled}");
    assert!(filled.contains("but not saved yet"));
    let saved = applications.send_limits(new.reference).await.unwrap();
    assert_eq!(saved.addresses, []);
    // A text that is no list of addresses fills in nothing.
    for text in ["x", "1.2.3.4/33", "%22%3E%3Cb%3E"] {
        let page = world.page(&format!("{settings}?addresses={text}"), &cookie).await;
        assert!(!page.contains("but not saved yet"), "{page}");
    }
    world.service.close().await;
}

#[tokio::test]
async fn the_settings_show_what_limits_would_have_refused() {
    let world = World::new().await;
    let applications = world.service.applications();
    let (new, cookie) = shop(&world, Some("Shop")).await;
    let settings = format!("/applications/{}/settings", new.reference);
    let shown = world.page(&settings, &cookie).await;
    for sentence in [
        "the 0 live messages of the last 7 days",
        "At 5 an hour to a recipient: 0 would have been refused.",
        "With quiet hours 21:00-08:00: 0 would have waited.",
        "Without international numbers: 0 would have been refused.",
    ] {
        assert!(shown.contains(sentence), "{sentence}: {shown}");
    }
    // There is no spend to propose.
    assert!(!shown.contains("At a spend of"));
    let tried = format!("{settings}?try_hour=7&try_spend=1.5&try_day=x&try_quiet=");
    let tried = world.page(&tried, &cookie).await;
    for sentence in [
        "At 7 an hour to a recipient: 0",
        "At a spend of 1.50 a day: 0",
        "Messages to a recipient per day: this must be a whole number",
        "value=\"7\"",
    ] {
        assert!(tried.contains(sentence), "{sentence}: {tried}");
    }
    let saved = applications.send_limits(new.reference).await.unwrap();
    assert_eq!(saved, domain::SendLimits::default());
    world.service.close().await;
}

#[tokio::test]
async fn pages_count_what_limits_would_have_refused_and_what_codes_cost() {
    let world = World::new().await;
    let messages = world.service.messages();
    let (new, cookie) = sending_shop(&world).await;
    let own = format!("/applications/{}", new.reference);
    let page = world.page(&format!("{own}/settings"), &cookie).await;
    let proposed =
        "At a spend of 0.30 a day, the highest of these days: 0 would have been refused.";
    assert!(page.contains(proposed), "{page}");
    let page = world.page(&format!("{own}/settings?try_day=4&try_spend=0.25"), &cookie).await;
    for sentence in [
        "tried on the 6 live messages of the last 7 days",
        "At 5 an hour to a recipient: 1 would have been refused.",
        "At 4 a day to a recipient: 2 would have been refused.",
        "At a spend of 0.25 a day: 1 would have been refused.",
        "Without international numbers: 0 would have been refused.",
    ] {
        assert!(page.contains(sentence), "{sentence}: {page}");
    }

    let started = messages.authorize_start(Some(new.live_key.expose()), None).await;
    let (access, defaults) = started.ok().unwrap();
    let number = domain::Number::parse("57000002").unwrap();
    let of = StartOf::New { number, locale: None, digits: 6, ttl_s: 600, name: None };
    let (key, origin) = (new.live_key.clone(), Origin::default());
    let request = StartRequest { key, of, idempotency: None, origin };
    let started = messages.start_verification(&access.access, &defaults, request).await;
    let started = started.ok().unwrap();
    let (_, claimed) = world.service.delivery().claim(SANDBOX_CARRIER, 100).await.unwrap();
    let handed = claimed.iter().find(|handed| Some(handed.id) == started.transid).unwrap();
    let code = handed.message.as_str().split(' ').next().unwrap();
    let (typed, id) = (domain::verify::TypedCode::parse(code), started.code.unwrap().id);
    let cells = async || {
        let page = world.page(&format!("{own}/verify"), &cookie).await;
        let cells = page.split("<td").skip(1);
        let row = cells.filter(|cell| cell.contains("Cost per verified number"));
        let row =
            row.filter_map(|cell| Some(cell.split_once('>')?.1.split_once('<')?.0.to_owned()));
        row.collect::<Vec<_>>()
    };
    assert_eq!(cells().await, ["–"]);
    let checked = messages.check_code(&access.access, &id.to_string(), typed.unwrap(), None).await;
    assert_eq!(checked.unwrap().failure, None);
    assert_eq!(cells().await, ["0.05"]);
    let page = world.page(&format!("{own}/verify"), &cookie).await;
    assert!(page.contains("Cost per verified number (USD)"), "{page}");
    let cost = "1 of 1 numbers were verified (100 %). A verified number cost 0.05 USD on average.";
    assert!(page.contains(cost), "{page}");

    // A long website costs another segment.
    let account = account_of(&world).await;
    let applications = world.service.applications();
    let english = domain::verify::Locale::English;
    for (website, is_long) in [("shop24.co.ls", false), ("shop.example.com", true)] {
        applications.set_code_settings(account, new.reference, english, website).await.unwrap();
        let page = world.page(&format!("{own}/verify"), &cookie).await;
        let warning = "need more than one segment in Arabic (2 segments, 1 page). You pay for";
        assert_eq!(page.contains(warning), is_long, "{page}");
    }
    world.service.close().await;
}

#[tokio::test]
async fn an_alarm_is_shown_until_it_is_read_and_refusals_are_counted() {
    let world = World::new().await;
    let applications = world.service.applications();
    let (new, cookie) = sending_shop(&world).await;
    let address = Some("192.0.2.7".parse().unwrap());
    let origin = Origin { address, leak: Some(domain::Leak::Browser) };
    for reason in [None, Some(Reason::InternationalDisabled), Some(Reason::InternationalDisabled)] {
        applications.note_origin(&new.live_key, origin, reason);
    }
    applications.store_alarms().await.unwrap();
    let own = format!("/applications/{}", new.reference);
    let [alarm] = &*applications.alarms(account_of(&world).await, new.reference).await.unwrap()
    else {
        panic!("no alarm")
    };
    let shown = world.page(&own, &cookie).await;
    for part in [
        "Leaked API key",
        &alarm.at.to_string(),
        "A browser used the API key. It came from 192.0.2.7.",
        &format!("<a href=\"{own}/keys\">Replace key</a>"),
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let overview = world.page("/applications", &cookie).await;
    assert!(overview.contains(&format!("{own}#alarms")), "{overview}");
    let settings = world.page(&format!("{own}/settings"), &cookie).await;
    let refused = format!("2: {} (", Reason::InternationalDisabled.sentence());
    assert!(settings.contains(&refused), "{refused}: {settings}");
    let mails = world.service.operations().mails(None, 100).await.unwrap().items;
    let mail = mails.iter().find(|mail| mail.kind == domain::MailKind::LimitAlarm).unwrap();
    assert_eq!(mail.recipient, "shop@example.org");
    assert!(mail.text.contains("It came from 192.0.2.7."), "{}", mail.text);

    let form = format!("reference={}&up_to={}", new.reference, alarm.id);
    let read = post(&world.portal, "/fn/read-alarms", &form, Some(cookie.clone())).await;
    assert!(read.status().is_success() || read.status().is_redirection());
    for path in [&own, "/applications"] {
        let shown = world.page(path, &cookie).await;
        assert!(!shown.contains("Leaked API key"), "{path}: {shown}");
    }
    world.service.close().await;
}

/// Returns the account that [`shop`] created.
async fn account_of(world: &World) -> i64 {
    let found = world.service.accounts().find_account("shop@example.org").await.unwrap();
    found.unwrap().id
}

#[tokio::test]
async fn the_keys_page_lists_the_addresses_that_used_a_key() {
    let world = World::new().await;
    let applications = world.service.applications();
    let sender = domain::SenderName::parse("Power").unwrap();
    let creating =
        applications.create_application(world.account, Category::Electricity, Some(&sender));
    let new = creating.await.unwrap();
    let path = format!("/applications/{}/keys", new.reference);
    let cookie = world.sign_in("customer@example.org").await;
    let heading = "Addresses that used this key in the last 30 days";
    assert!(!world.page(&path, &cookie).await.contains(heading));
    for address in ["192.0.2.7", "2001:db8::1", "192.0.2.7"] {
        applications.note_key_use(&new.live_key, Some(address.parse().unwrap()));
    }
    applications.store_key_uses().await.unwrap();
    let page = world.page(&path, &cookie).await;
    assert_eq!(page.matches(heading).count(), 1, "the test key wasn't used");
    for (address, calls) in [("192.0.2.7", 2), ("2001:db8::1", 1)] {
        let row = page.split(&format!(">{address}<")).nth(1).unwrap();
        let calls = format!(">{calls}<");
        assert!(row.find(&calls).is_some_and(|at| at < 200), "{address}: {row}");
    }
    world.service.close().await;
}
