//! One process sets prices, and the others charge them.

use domain::{Prefix, PriceChange};
use service::Actor;

use crate::database::Backend;
use crate::processes::peer;
use crate::world::{World, money, request};

#[tokio::test(flavor = "multi_thread")]
async fn a_price_that_one_process_sets_is_charged_by_all_from_its_answer_on() {
    let world = World::new(Backend::SHARED).await;
    let customer = world.active("one@example.org", "100").await;
    let other = peer(&world, 1).await;
    for n in 1..=20 {
        // Both cache the previous price.
        for service in [&world.service, &other] {
            let messages = service.messages();
            let sent = messages.send(request(&customer.live, "27821234567", "x"));
            sent.await.unwrap();
        }
        world.pass(1);
        let price = money(&format!("0.3{n:02}"));
        let change = PriceChange::Prefix(Prefix::parse("27").unwrap(), Some(price));
        let service = if n % 2 == 0 { &world.service } else { &other };
        let money = service.money();
        let setting = money.set_price(&Actor::CommandLine, change, None);
        setting.await.unwrap();
        for service in [&world.service, &other] {
            let messages = service.messages();
            let sent = messages.send(request(&customer.live, "27821234567", "x"));
            assert_eq!(sent.await.unwrap().cost, price);
        }
    }
    other.close().await;
    world.assert_sound().await;
}
