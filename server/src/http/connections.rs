//! Which connections are open, and which of them gives way when there are too many.
//!
//! An address, and a network of addresses, has so many at a time; one more is closed at once. All
//! together have so many, too. One more is then let in by closing another one: of the network with
//! the most connections the address with the most, and of that address the connection that has been
//! idle for longest. So who opens many makes room for those who open few.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use service::Networks;
use tokio::sync::Notify;

use crate::config::{ConnectionLimits, Network};
use crate::metrics::Metrics;

/// When to look again whether one of the connections of trusted proxies is idle, while none was.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// The connections of one listener.
pub struct Connections {
    limits: ConnectionLimits,
    /// Proxies speak for many clients, so that only the limit of all connections is theirs.
    trusted: Vec<Network>,
    metrics: Arc<Metrics>,
    started: Instant,
    open: Mutex<Open>,
    /// Told when a connection ends.
    ended: Notify,
}

#[derive(Default)]
struct Open {
    next_id: u64,
    connections: HashMap<u64, Arc<Connection>>,
    addresses: HashMap<Client, usize>,
    networks: HashMap<Arc<str>, usize>,
}

/// Whose connection it is.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Client {
    /// The /48 of an IPv6 address, the /24 of an IPv4 address.
    network: Arc<str>,
    /// The /64 of an IPv6 address, which one customer has; an IPv4 address.
    address: Arc<str>,
}

/// What is known of an open connection.
struct Connection {
    /// `None` for a trusted proxy.
    client: Option<Client>,
    /// Whether a request is being answered.
    is_busy: AtomicBool,
    /// When it last began or ended a request, or took bytes of an answer; by the milliseconds since
    /// the start.
    used_ms: AtomicU64,
    gives_way: Notify,
}

/// A connection's place among the others, until it is dropped.
pub struct Place {
    connections: Arc<Connections>,
    id: u64,
    connection: Arc<Connection>,
}

/// What makes room for a new connection.
enum Room {
    Closing(u64),
    /// Nothing: the new one is one too many.
    Refused,
    /// Nothing yet: all are answering requests of trusted proxies.
    Later,
}

impl Connections {
    pub fn new(limits: ConnectionLimits, trusted: Vec<Network>, metrics: Arc<Metrics>) -> Self {
        Self {
            limits,
            trusted,
            metrics,
            started: Instant::now(),
            open: Mutex::default(),
            ended: Notify::new(),
        }
    }

    /// A place for a new connection from this address; `None` when it has to be closed. Waits only
    /// for what trusted proxies are being answered.
    pub async fn take(self: &Arc<Self>, peer: IpAddr) -> Option<Place> {
        let is_trusted = self.trusted.iter().any(|network| network.contains(peer));
        let client = (!is_trusted).then(|| Client::of(peer));
        loop {
            let ended = self.ended.notified();
            match self.try_take(client.as_ref()) {
                Ok(place) => return place,
                Err(()) => drop(tokio::time::timeout(LOOK_AGAIN, ended).await),
            }
        }
    }

    /// `Err` when it is to be tried again.
    fn try_take(self: &Arc<Self>, client: Option<&Client>) -> Result<Option<Place>, ()> {
        let mut open = self.open();
        if let Some(limit) = client.and_then(|client| open.reached(client, &self.limits)) {
            self.metrics.connection_limited(limit);
            return Ok(None);
        }
        if open.connections.len() >= self.limits.all {
            let closing = match open.room(client) {
                Room::Closing(id) => Some(id),
                Room::Refused => None,
                Room::Later => return Err(()),
            };
            self.metrics.connection_limited("all");
            let Some(id) = closing else {
                return Ok(None);
            };
            open.close(id);
        }
        let connection = Arc::new(Connection {
            client: client.cloned(),
            is_busy: AtomicBool::new(false),
            used_ms: AtomicU64::new(self.now_ms()),
            gives_way: Notify::new(),
        });
        let id = open.add(Arc::clone(&connection));
        drop(open);
        Ok(Some(Place {
            connections: Arc::clone(self),
            id,
            connection,
        }))
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

impl Client {
    fn of(peer: IpAddr) -> Self {
        let networks = Networks::of(&peer.to_canonical().to_string());
        Self {
            network: networks.far.into(),
            address: networks.near.into(),
        }
    }
}

impl Open {
    /// The limit that one more connection of a client would exceed.
    fn reached(&self, client: &Client, limits: &ConnectionLimits) -> Option<&'static str> {
        let of_address = self.addresses.get(client).copied().unwrap_or_default();
        if of_address >= limits.address {
            return Some("address");
        }
        (self.of_network(client) >= limits.network).then_some("network")
    }

    fn of_network(&self, client: &Client) -> usize {
        let count = self.networks.get(&client.network);
        count.copied().unwrap_or_default()
    }

    fn add(&mut self, connection: Arc<Connection>) -> u64 {
        if let Some(client) = &connection.client {
            *self.addresses.entry(client.clone()).or_default() += 1;
            let network = Arc::clone(&client.network);
            *self.networks.entry(network).or_default() += 1;
        }
        let id = self.next_id;
        self.next_id += 1;
        self.connections.insert(id, connection);
        id
    }

    /// Forgets a connection, if that wasn't done before.
    fn remove(&mut self, id: u64) -> Option<Arc<Connection>> {
        let connection = self.connections.remove(&id)?;
        if let Some(client) = &connection.client {
            take_one(&mut self.addresses, client);
            take_one(&mut self.networks, &client.network);
        }
        Some(connection)
    }

    fn close(&mut self, id: u64) {
        if let Some(connection) = self.remove(id) {
            connection.gives_way.notify_one();
        }
    }

    /// What makes room for a connection of this client, or of a trusted proxy.
    fn room(&self, new: Option<&Client>) -> Room {
        let trusted = self.connections.len() - self.networks.values().sum::<usize>();
        let busiest = self.networks.iter().max_by_key(|(_, count)| **count);
        match busiest {
            Some((network, count)) if *count >= trusted => self.room_in(network, *count, new),
            _ => self.room_of_trusted(new),
        }
    }

    /// Room in the network that has the most connections, or in the client's own if that has as
    /// many.
    fn room_in(&self, busiest: &Arc<str>, count: usize, new: Option<&Client>) -> Room {
        let own = new.filter(|new| self.of_network(new) >= count);
        let network = own.map_or(busiest, |new| &new.network);
        let addresses = self.addresses.iter();
        let in_network = addresses.filter(|(client, _)| client.network == *network);
        let Some((client, most)) = in_network.max_by_key(|(_, count)| **count) else {
            return Room::Refused;
        };
        let of_new = own.and_then(|new| self.addresses.get(new));
        if of_new.is_some_and(|count| count >= most) {
            return Room::Refused;
        }
        let found = self.longest_idle(|connection| connection.client.as_ref() == Some(client));
        found.map_or(Room::Refused, |(id, _)| Room::Closing(id))
    }

    /// Room among the connections of trusted proxies: those that are answered nothing now.
    fn room_of_trusted(&self, new: Option<&Client>) -> Room {
        match self.longest_idle(|connection| connection.client.is_none()) {
            Some((id, is_busy)) if !is_busy => Room::Closing(id),
            _ if new.is_some() => Room::Refused,
            _ => Room::Later,
        }
    }

    /// The connection that has been idle for longest, or where none is idle, that has been busy for
    /// longest; and whether it is busy.
    fn longest_idle(&self, is_meant: impl Fn(&Connection) -> bool) -> Option<(u64, bool)> {
        let meant = self.connections.iter().filter(|(_, one)| is_meant(one));
        let states = meant.map(|(id, one)| {
            let used_ms = one.used_ms.load(Ordering::Relaxed);
            (one.is_busy.load(Ordering::Relaxed), used_ms, *id)
        });
        states.min().map(|(is_busy, _, id)| (id, is_busy))
    }
}

fn take_one<K: std::hash::Hash + Eq>(counts: &mut HashMap<K, usize>, name: &K) {
    if let Some(count) = counts.get_mut(name) {
        *count -= 1;
        if *count == 0 {
            counts.remove(name);
        }
    }
}

impl Place {
    /// Waits until the connection is to make room for another one.
    pub async fn gives_way(&self) {
        self.connection.gives_way.notified().await;
    }

    /// A request begins; it ends when the returned value is dropped.
    pub fn begin_request(self: &Arc<Self>) -> Busy {
        self.connection.is_busy.store(true, Ordering::Relaxed);
        self.used();
        Busy(Arc::clone(self))
    }

    /// The connection isn't idle: its client takes what it is answered.
    pub fn used(&self) {
        let now_ms = self.connections.now_ms();
        self.connection.used_ms.store(now_ms, Ordering::Relaxed);
    }

    /// Counts that the connection is cut because its client doesn't read.
    pub fn is_unread(&self) {
        self.connections.metrics.connection_limited("unread");
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.connections.open().remove(self.id);
        self.connections.ended.notify_one();
    }
}

/// A request that is being answered.
pub struct Busy(Arc<Place>);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.connection.is_busy.store(false, Ordering::Relaxed);
        self.0.used();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    const LIMITS: ConnectionLimits = ConnectionLimits {
        all: 6,
        address: 4,
        network: 5,
    };

    fn connections() -> Arc<Connections> {
        let trusted = vec!["127.0.0.1".parse().unwrap()];
        Arc::new(Connections::new(LIMITS, trusted, Arc::default()))
    }

    /// A connection from this address, if it gets a place at once.
    fn opened(connections: &Arc<Connections>, address: &str) -> Option<Arc<Place>> {
        let taken = connections.take(address.parse().unwrap());
        taken.now_or_never().flatten().map(Arc::new)
    }

    fn open(connections: &Arc<Connections>, address: &str, count: usize) -> Vec<Arc<Place>> {
        let all = (0..count).map(|_| opened(connections, address).unwrap());
        all.collect()
    }

    fn gave_way(place: &Place) -> bool {
        place.gives_way().now_or_never().is_some()
    }

    #[test]
    fn an_address_and_a_network_have_so_many() {
        for (first, same_64, same_48, other) in [
            ("192.0.2.1", "192.0.2.1", "192.0.2.2", "198.51.100.1"),
            ("::ffff:192.0.2.1", "192.0.2.1", "192.0.2.2", "2001:db8::1"),
            (
                "2001:db8::1",
                "2001:db8::2",
                "2001:db8:0:1::1",
                "2001:db8:1::1",
            ),
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
        // It has the most already.
        assert!(opened(&connections, "192.0.2.1").is_none());
        let newcomer = opened(&connections, "203.0.113.1").unwrap();
        assert_eq!(many.iter().filter(|place| gave_way(place)).count(), 1);
        // Three, two and one: of the network with the most, also for a neighbour in it.
        let neighbour = opened(&connections, "192.0.2.2").unwrap();
        assert_eq!(many.iter().filter(|place| gave_way(place)).count(), 1);
        assert!(!few.iter().any(|place| gave_way(place)));
        assert!(!gave_way(&newcomer) && !gave_way(&neighbour));
        drop((many, few, newcomer, neighbour));
        let open = connections.open();
        assert!(open.connections.is_empty() && open.addresses.is_empty());
        assert!(open.networks.is_empty());
    }

    #[test]
    fn the_connection_that_is_idle_for_longest_gives_way() {
        let connections = connections();
        let places = open(&connections, "192.0.2.1", 4);
        let _few = open(&connections, "198.51.100.1", 2);
        for (place, used_ms) in places.iter().zip([0, 30, 10, 20]) {
            place.connection.used_ms.store(used_ms, Ordering::Relaxed);
        }
        let is_busy = &places[0].connection.is_busy;
        is_busy.store(true, Ordering::Relaxed);
        let _newcomer = opened(&connections, "203.0.113.1").unwrap();
        let gone: Vec<_> = places.iter().map(|place| gave_way(place)).collect();
        assert_eq!(gone, [false, false, true, false]);
    }

    #[tokio::test]
    async fn trusted_proxies_wait_only_for_their_own_requests() {
        let connections = connections();
        let mut places = open(&connections, "127.0.0.1", 6);
        let busy: Vec<_> = places.iter().map(Place::begin_request).collect();
        assert!(opened(&connections, "192.0.2.1").is_none());
        let mut waiting = Box::pin(connections.take("127.0.0.1".parse().unwrap()));
        assert!((&mut waiting).now_or_never().is_none());
        drop(busy);
        places.pop();
        let sixth = waiting.now_or_never().flatten().unwrap();
        // Those that do nothing make room.
        let client = opened(&connections, "192.0.2.1").unwrap();
        assert_eq!(places.iter().filter(|place| gave_way(place)).count(), 1);
        assert!(!gave_way(&client) && !gave_way(&sixth));
    }
}
