//! Commit groups whose outcome becomes known after their end, or never. (Distributed tables can't
//! have the trigger that makes the query slow here.)

use std::time::Duration;

use domain::Reason;
use service::{Limits, SANDBOX_CARRIER, SendError};
use sqlx::Executor as _;

use super::cuts::{Fate, Proxy, stored};
use crate::database::Backend;
use crate::world::{World, request};

/// The query for the outcome of a commit group takes longer than the group waits.
#[tokio::test(flavor = "multi_thread")]
async fn a_send_that_is_answered_after_its_group_counts_against_its_keys_limit() {
    const SLOW_QUESTIONS: &str = "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql \
        AS $$ BEGIN PERFORM pg_sleep(3); RETURN NEW; END $$; \
        CREATE TRIGGER slow BEFORE INSERT ON commit_groups FOR EACH ROW \
        WHEN (NEW.answer IS NULL) EXECUTE FUNCTION slow()";
    let world = World::new(Backend::Postgres).await;
    let customer = world.active("one@example.org", "100").await;
    let mut conn = world.database.connect().await;
    conn.execute(SLOW_QUESTIONS).await.unwrap();
    let url = world.database.url();
    let proxy = Proxy::before(&url, None).await;
    let limits = Limits { requests_per_second: Some(2), ..Limits::default() };
    let service = proxy.service_with(&world, &url, limits).await;
    let messages = service.messages();
    let send = || messages.send(request(&customer.live, "12345678", "hello"));
    send().await.unwrap();
    proxy.next(Fate::After);
    send().await.unwrap();
    let limited = Err(SendError::Refused(Reason::RateLimited));
    assert_eq!(send().await, limited);
    assert_eq!(stored(&mut conn).await.len(), 2);
    world.assert_sound().await;
}

/// The query for the outcome of a claim gets no answer while the commit group waits for it, nor
/// later. The slots of the claim are released while the commit group's thread sleeps, and nothing
/// else wakes the thread.
#[tokio::test]
async fn a_message_is_submitted_when_the_places_of_an_unanswered_claim_come_back() {
    /// How long the background task queries.
    const ASKED: Duration = Duration::from_secs(40);
    const SOON: Duration = Duration::from_secs(20);
    let world = World::new(Backend::Postgres).await;
    let customer = world.active("one@example.org", "100").await;
    let waiting = world.send(&customer.live, "57000001").await.unwrap();
    let url = world.database.url();
    let proxy = Proxy::before(&url, None).await;
    let service = proxy.service(&world, &url).await;
    proxy.next(Fate::Held);
    let mut consumer = service.delivery().consume(SANDBOX_CARRIER);
    consumer.credit().refresh(|| 1);
    proxy.state.held.notified().await;
    let mut conn = world.database.connect().await;
    let no_answers = "BEGIN; LOCK TABLE commit_groups IN SHARE MODE";
    conn.execute(no_answers).await.unwrap();
    proxy.state.release.notify_one();
    // The next commit group refuses it. After that, the thread finds no free slot and sleeps.
    let messages = service.messages();
    let refused = messages.send(request(&customer.live, "57000002", "hello"));
    let unavailable = Err(SendError::Refused(Reason::Unavailable));
    assert_eq!(refused.await, unavailable);
    tokio::time::pause();
    tokio::time::advance(ASKED).await;
    tokio::time::resume();
    conn.execute("ROLLBACK").await.unwrap();
    let next = tokio::time::timeout(SOON, consumer.next()).await;
    let (_, messages) = next.expect("the message still waits");
    assert_eq!(messages.len(), 1);
    assert_eq!(messages[0].id, waiting.transid.unwrap());
    world.assert_sound().await;
}
