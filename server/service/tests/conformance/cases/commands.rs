//! The commands about opt-outs that handsets send, and the replies.

use domain::records::{MessageRecord, SYSTEM_KIND};
use domain::{EventType, LimitField, MessageStatus, OptOutRecord, OptOutSource, Reason};
use service::{EventData, EventFilter, MessageFilter, OptOutFilter, SendError};

use super::events::page;
use super::inbound::{HANDSET, MINUTE_MS, add_number, part, receive, text, texts as received};
use super::limits::limit;
use crate::database::Backend;
use crate::uploads::{batch, plain, upload};
use crate::world::{Customer, HOUR_MS, World, money};

on_each_backend![
    a_stop_stops_everything_and_is_confirmed_once_a_day,
    a_start_ends_the_opt_out,
    a_repeated_stop_counts_and_a_repeated_start_does_not,
    a_message_with_missing_parts_is_no_command,
    help_is_answered_without_money,
    a_command_to_a_shared_number_is_for_those_who_sent,
    a_command_after_a_keyword_is_for_its_application,
    a_stop_to_nobodys_number_counts_when_the_number_is_assigned,
    only_active_applications_reply_and_only_to_numbers,
];

/// The handset's number as customers write it.
const LOCAL: &str = "57000001";
const REFUSED: SendError = SendError::Refused(Reason::OptedOut);
const CONFIRMED: &str =
    "You will get no more messages from us. Send START to +26650000009 to get them again.";

async fn with_number(backend: Backend, balance: &str) -> (World, Customer) {
    let world = World::new(backend).await;
    let customer = world.active("one@example.org", balance).await;
    add_number(&world, None, customer.reference).await;
    (world, customer)
}

/// Receives a text that the carrier can't be repeating.
async fn hear(world: &World, message: &str) {
    world.pass(6 * MINUTE_MS);
    receive(world, vec![text(message)]).await;
}

/// Returns the replies of an application, oldest first.
async fn replies(world: &World, customer: &Customer) -> Vec<MessageRecord> {
    let filter = MessageFilter { limit: 1000, ..MessageFilter::default() };
    let messages = world.service.messages();
    let found = messages.account_messages(customer.account.id, Some(customer.reference), &filter);
    let found = found.await.unwrap().items.into_iter().rev();
    found.filter(|message| message.shown_kind() == SYSTEM_KIND).collect()
}

async fn opt_outs(world: &World, customer: &Customer) -> Vec<OptOutRecord> {
    let access = world.access(&customer.live).await;
    let filter = OptOutFilter { limit: 1000, ..OptOutFilter::default() };
    world.service.applications().opt_outs(&access, &filter).await.unwrap().items
}

async fn has_opted_out(world: &World, customer: &Customer) -> bool {
    !opt_outs(world, customer).await.is_empty()
}

async fn a_stop_stops_everything_and_is_confirmed_once_a_day(backend: Backend) {
    let (world, customer) = with_number(backend, "1").await;
    let start = page(&world, &customer, EventFilter { limit: 100, ..EventFilter::default() }).await;
    let rows = format!("71234567,a\n+{HANDSET},b\n");
    let answer = upload(&world.service, &customer.live, None, &rows, plain()).await.unwrap();
    // Replies don't wait for the end of quiet hours.
    limit(&world, &customer, &[(LimitField::QuietHours, "00:00-23:59")]).await;
    hear(&world, " «Arrêt!» ").await;
    assert_eq!(world.send(&customer.live, LOCAL).await, Err(REFUSED));
    world.expand_all().await;
    let found = batch(&world, &customer, answer.batchid.unwrap()).await;
    assert_eq!(found.counts.get(MessageStatus::Rejected), 1);
    assert_eq!((found.cost, found.released), (money("0.3"), money("0.25")));
    assert_eq!(world.balance(&customer.live).await, money("0.95"));
    let opt_out = OptOutRecord {
        number: Some(HANDSET.to_owned()),
        source: OptOutSource::Reply,
        created_at: world.now(),
    };
    assert_eq!(opt_outs(&world, &customer).await, [opt_out]);

    let filter = EventFilter { limit: 100, cursor: Some(start.next), ..EventFilter::default() };
    let events = page(&world, &customer, filter).await.events;
    let kinds: Vec<EventType> = events.iter().map(|event| event.kind).collect();
    assert_eq!(kinds, [EventType::Received, EventType::OptOutAdded, EventType::Rejected]);
    let EventData::Other(added) = &events[1].data else { panic!("{:?}", events[1].data) };
    assert!(added.contains(r#""source":"reply""#), "{added}");

    let all = replies(&world, &customer).await;
    let reply = &all[0];
    assert_eq!((reply.number.as_str(), reply.message.as_str()), (LOCAL, CONFIRMED));
    assert_eq!((reply.cost, reply.pages, reply.status), (money("0"), 1, MessageStatus::Queued));
    let charge = world.message(&customer, reply.transid).await.charge;
    assert_eq!((charge.rule.as_str(), charge.charged), (SYSTEM_KIND, money("0")));
    // The opt-out doesn't hold up the reply.
    let (_, claimed) = world.service.delivery().claim("sandbox", 100).await.unwrap();
    let reply = claimed.iter().find(|message| message.id == reply.transid).unwrap();
    assert_eq!((reply.address.as_str(), claimed.len()), (HANDSET, 2));

    hear(&world, "stop").await;
    receive(&world, vec![text("STOP "), text("quit")]).await;
    assert_eq!(replies(&world, &customer).await.len(), 1);
    world.pass(24 * HOUR_MS);
    hear(&world, "stop").await;
    assert_eq!(replies(&world, &customer).await.len(), 2);
    world.assert_sound().await;
}

async fn a_start_ends_the_opt_out(backend: Backend) {
    let (world, customer) = with_number(backend, "1").await;
    receive(&world, vec![text("stop"), text("Start.")]).await;
    assert!(!has_opted_out(&world, &customer).await);
    receive(&world, vec![text("START"), text("STOP")]).await;
    assert!(has_opted_out(&world, &customer).await);
    hear(&world, "start").await;
    world.send(&customer.live, LOCAL).await.unwrap();
    // A command is the whole text.
    hear(&world, "Please stop").await;
    world.send(&customer.live, LOCAL).await.unwrap();
    assert_eq!(replies(&world, &customer).await.len(), 1);
    let types = Some(vec![EventType::OptOutRemoved]);
    let filter = EventFilter { types, limit: 100, ..EventFilter::default() };
    assert_eq!(page(&world, &customer, filter).await.events.len(), 2);
    world.assert_sound().await;
}

async fn a_repeated_stop_counts_and_a_repeated_start_does_not(backend: Backend) {
    let (world, customer) = with_number(backend, "1").await;
    for message in ["STOP", "START", "STOP"] {
        receive(&world, vec![text(message)]).await;
    }
    assert!(has_opted_out(&world, &customer).await);
    // The carrier may repeat the START, which came before the second STOP.
    receive(&world, vec![text("START")]).await;
    assert!(has_opted_out(&world, &customer).await);
    assert_eq!(received(&world, &customer).await, ["STOP", "START"]);
    assert_eq!(replies(&world, &customer).await.len(), 1);
    world.assert_sound().await;
}

async fn a_message_with_missing_parts_is_no_command(backend: Backend) {
    let (world, customer) = with_number(backend, "1").await;
    let news = world.active("two@example.org", "1").await;
    add_number(&world, Some("NEWS"), news.reference).await;
    receive(&world, vec![part(HANDSET, 1, (2, 2), "end"), part(HANDSET, 2, (2, 2), "news")]).await;
    world.pass(11 * MINUTE_MS);
    world.service.delivery().join_inbound().await.unwrap();
    assert_eq!(received(&world, &customer).await, ["[…]end", "[…]news"]);
    assert!(!has_opted_out(&world, &customer).await);
    world.assert_sound().await;
}

async fn help_is_answered_without_money(backend: Backend) {
    let (world, customer) = with_number(backend, "0").await;
    receive(&world, vec![text("Help?")]).await;
    hear(&world, "HELP").await;
    let all = replies(&world, &customer).await;
    let texts: Vec<&str> = all.iter().map(|message| message.message.as_str()).collect();
    let expected = "Send STOP to +26650000009 to get no more messages from us, or START to get them \
        again.";
    assert_eq!(texts, [expected]);
    // Each command has a reply of its own.
    hear(&world, "STOP").await;
    assert_eq!(replies(&world, &customer).await.len(), 2);
    world.assert_sound().await;
}

async fn a_command_to_a_shared_number_is_for_those_who_sent(backend: Backend) {
    let (world, default) = with_number(backend, "1").await;
    let long_ago = world.active("two@example.org", "1").await;
    add_number(&world, Some("TWO"), long_ago.reference).await;
    let lately = world.active("three@example.org", "1").await;
    add_number(&world, Some("THREE"), lately.reference).await;
    let all = [&default, &long_ago, &lately];
    let opted_out = async || {
        let mut found = Vec::new();
        for customer in all {
            found.push(has_opted_out(&world, customer).await);
        }
        found
    };
    hear(&world, "stop").await;
    assert_eq!(opted_out().await, [true, false, false]);
    assert_eq!(replies(&world, &default).await.len(), 1);
    hear(&world, "start").await;
    assert_eq!(opted_out().await, [false; 3]);

    world.send(&long_ago.live, LOCAL).await.unwrap();
    world.pass(31 * 24 * HOUR_MS);
    world.send(&lately.live, &format!("+{HANDSET}")).await.unwrap();
    // Neither the reply of the first application nor a test message counts.
    world.send(&default.test, LOCAL).await.unwrap();
    hear(&world, "stop").await;
    assert_eq!(opted_out().await, [false, false, true]);
    assert_eq!(replies(&world, &lately).await.len(), 1);
    world.send(&default.live, LOCAL).await.unwrap();
    hear(&world, "stop").await;
    assert_eq!(opted_out().await, [true, false, true]);
    hear(&world, "start").await;
    assert_eq!(opted_out().await, [false; 3]);
    world.assert_sound().await;
}

async fn a_command_after_a_keyword_is_for_its_application(backend: Backend) {
    let (world, default) = with_number(backend, "1").await;
    let two = world.active("two@example.org", "1").await;
    add_number(&world, Some("NEWS"), two.reference).await;
    world.send(&default.live, LOCAL).await.unwrap();
    hear(&world, "News stop!").await;
    assert_eq!(world.send(&two.live, LOCAL).await, Err(REFUSED));
    assert!(!has_opted_out(&world, &default).await);
    assert_eq!(replies(&world, &two).await.len(), 1);
    assert_eq!(replies(&world, &default).await, []);
    world.assert_sound().await;
}

async fn a_stop_to_nobodys_number_counts_when_the_number_is_assigned(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.active("one@example.org", "1").await;
    hear(&world, "stop").await;
    add_number(&world, None, customer.reference).await;
    assert!(!has_opted_out(&world, &customer).await);
    let support = world.service.support();
    let assign = || support.assign_inbound(&service::Actor::CommandLine, "26650000009");
    assign().await.unwrap();
    assert!(has_opted_out(&world, &customer).await);
    assert!(assign().await.is_err());
    // A reply would come too late.
    assert_eq!(replies(&world, &customer).await, []);
    world.assert_sound().await;
}

async fn only_active_applications_reply_and_only_to_numbers(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.pending("one@example.org").await;
    add_number(&world, None, customer.reference).await;
    hear(&world, "stop").await;
    assert!(has_opted_out(&world, &customer).await);
    hear(&world, "start").await;
    world.activate(&customer, "1").await;
    let mut named = text("STOP");
    named.number = "Vodacom".into();
    receive(&world, vec![named]).await;
    assert!(!has_opted_out(&world, &customer).await);
    assert_eq!(replies(&world, &customer).await, []);
    world.assert_sound().await;
}
