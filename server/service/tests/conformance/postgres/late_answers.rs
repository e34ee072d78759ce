//! A turn whose outcome is known after its end. (A distributed table takes no trigger, by which
//! the question is made slow here.)

use domain::Reason;
use service::{Limits, SendError};
use sqlx::Executor as _;

use super::cuts::{Fate, Proxy, stored};
use crate::database::Backend;
use crate::world::{World, request};

/// The question whether a turn is stored takes longer than the turn waits for its answer.
#[tokio::test(flavor = "multi_thread")]
async fn a_send_that_is_answered_after_its_turn_counts_against_its_keys_limit() {
    const SLOW_QUESTIONS: &str = "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql \
        AS $$ BEGIN PERFORM pg_sleep(3); RETURN NEW; END $$; \
        CREATE TRIGGER slow BEFORE INSERT ON turns FOR EACH ROW \
        WHEN (NEW.answer IS NULL) EXECUTE FUNCTION slow()";
    let world = World::new(Backend::Postgres).await;
    let customer = world.active("one@example.org", "100").await;
    let mut conn = world.database.connect().await;
    conn.execute(SLOW_QUESTIONS).await.unwrap();
    let url = world.database.url();
    let proxy = Proxy::before(&url, None).await;
    let limits = Limits {
        requests_per_second: Some(2),
        ..Limits::default()
    };
    let service = proxy.service_with(&world, &url, limits).await;
    let send = || service.send(request(&customer.live, "12345678", "hello"));
    send().await.unwrap();
    proxy.next(Fate::After);
    send().await.unwrap();
    let limited = Err(SendError::Refused(Reason::RateLimited));
    assert_eq!(send().await, limited);
    assert_eq!(stored(&mut conn).await.len(), 2);
    world.assert_sound().await;
}
