use futures_util::FutureExt as _;

use super::*;

const LIMITS: ConnectionLimits = ConnectionLimits { all: 6, address: 4, network: 5 };

fn connections() -> Arc<Connections> {
    let trusted = vec!["127.0.0.1".parse().unwrap()];
    Arc::new(Connections::new(LIMITS, trusted, Arc::default()))
}

/// Opens a connection from this address, if a slot is free at once.
fn opened(connections: &Arc<Connections>, address: &str) -> Option<Arc<Slot>> {
    let taken = connections.take(address.parse().unwrap());
    taken.now_or_never().flatten().map(Arc::new)
}

fn open(connections: &Arc<Connections>, address: &str, count: usize) -> Vec<Arc<Slot>> {
    let all = (0..count).map(|_| opened(connections, address).unwrap());
    all.collect()
}

fn gave_way(slot: &Slot) -> bool {
    slot.gives_way().now_or_never().is_some()
}

#[test]
fn an_address_and_a_network_have_so_many() {
    for (first, same_64, same_48, other) in [
        ("192.0.2.1", "192.0.2.1", "192.0.2.2", "198.51.100.1"),
        ("::ffff:192.0.2.1", "192.0.2.1", "192.0.2.2", "2001:db8::1"),
        ("2001:db8::1", "2001:db8::2", "2001:db8:0:1::1", "2001:db8:1::1"),
    ] {
        let connections = connections();
        let mut of_first = open(&connections, first, 4);
        assert!(opened(&connections, same_64).is_none());
        let _neighbour = opened(&connections, same_48).unwrap();
        assert!(opened(&connections, same_48).is_none());
        drop(of_first.pop());
        assert!(opened(&connections, same_64).is_some());
        assert!(opened(&connections, other).is_some());
        let text = connections.metrics.render(None);
        for line in ["limit=\"address\"} 1\n", "limit=\"network\"} 1\n"] {
            assert!(text.contains(line), "{text}");
        }
    }
}

#[test]
fn who_has_the_most_makes_room() {
    let connections = connections();
    let many = open(&connections, "192.0.2.1", 4);
    let few = open(&connections, "198.51.100.1", 2);
    // This client already has the most connections.
    assert!(opened(&connections, "192.0.2.1").is_none());
    let newcomer = opened(&connections, "203.0.113.1").unwrap();
    assert_eq!(many.iter().filter(|slot| gave_way(slot)).count(), 1);
    // The clients now have three, two and one. The network with the most makes room, even for a
    // neighbour in the same network.
    let neighbour = opened(&connections, "192.0.2.2").unwrap();
    assert_eq!(many.iter().filter(|slot| gave_way(slot)).count(), 1);
    assert!(!few.iter().any(|slot| gave_way(slot)));
    assert!(!gave_way(&newcomer) && !gave_way(&neighbour));
    drop((many, few, newcomer, neighbour));
    let open = connections.open.lock();
    assert!(open.connections.is_empty() && open.addresses.is_empty());
    assert!(open.networks.is_empty());
}

#[test]
fn the_connection_that_is_idle_for_longest_gives_way() {
    let connections = connections();
    let slots = open(&connections, "192.0.2.1", 4);
    let _few = open(&connections, "198.51.100.1", 2);
    for (slot, used_ms) in slots.iter().zip([0, 30, 10, 20]) {
        slot.connection.used_ms.store(used_ms, Ordering::Relaxed);
    }
    let is_busy = &slots[0].connection.is_busy;
    is_busy.store(true, Ordering::Relaxed);
    let _newcomer = opened(&connections, "203.0.113.1").unwrap();
    let gone: Vec<_> = slots.iter().map(|slot| gave_way(slot)).collect();
    assert_eq!(gone, [false, false, true, false]);
}

#[tokio::test]
async fn trusted_proxies_wait_only_for_their_own_requests() {
    let connections = connections();
    let mut slots = open(&connections, "127.0.0.1", 6);
    let busy: Vec<_> = slots.iter().map(Slot::begin_request).collect();
    assert!(opened(&connections, "192.0.2.1").is_none());
    let mut waiting = Box::pin(connections.take("127.0.0.1".parse().unwrap()));
    assert!((&mut waiting).now_or_never().is_none());
    drop(busy);
    slots.pop();
    let sixth = waiting.now_or_never().flatten().unwrap();
    // Idle connections make room.
    let client = opened(&connections, "192.0.2.1").unwrap();
    assert_eq!(slots.iter().filter(|slot| gave_way(slot)).count(), 1);
    assert!(!gave_way(&client) && !gave_way(&sixth));
}
