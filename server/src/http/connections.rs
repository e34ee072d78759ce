//! Tracks the open connections, and decides which one to close if there are too many.
//!
//! The number of connections is limited for each address, for each network of addresses, and in
//! total. A new connection that exceeds the limit of its address or network is closed at once. If
//! the total is reached, another connection is closed to make room for the new one. It is chosen
//! from the network with the most connections and, within that network, from the address with the
//! most. Of that address's connections, the one that has been idle for longest is closed. So
//! clients with many connections make room for clients with few. If the new connection comes from
//! the address with the most, it is refused instead. The connections of all trusted proxies count
//! as one network, of which only idle ones are closed.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use domain::AddressRange;
use parking_lot::Mutex;
use service::Networks;
use tokio::sync::Notify;

use crate::config::ConnectionLimits;
use crate::metrics::Metrics;

/// How often to check for an idle connection while all connections of trusted proxies are busy.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// The connections of one listener.
pub struct Connections {
    limits: ConnectionLimits,
    /// The trusted proxies. They connect for many clients, so only the total limit applies to them.
    trusted: Vec<AddressRange>,
    metrics: Arc<Metrics>,
    started: Instant,
    open: Mutex<Open>,
    /// Notified when a connection ends.
    ended: Notify,
}

#[derive(Default)]
struct Open {
    next_id: u64,
    connections: HashMap<u64, Arc<Connection>>,
    addresses: HashMap<Client, usize>,
    networks: HashMap<Arc<str>, usize>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Client {
    /// The /48 of an IPv6 address, or the /24 of an IPv4 address.
    network: Arc<str>,
    /// The /64 of an IPv6 address, which a single customer has, or an IPv4 address.
    address: Arc<str>,
}

/// The state of an open connection.
struct Connection {
    /// `None` for a trusted proxy.
    client: Option<Client>,
    /// True while a request is being handled.
    is_busy: AtomicBool,
    /// When a request last began or ended, or the client last received bytes of a response. In
    /// milliseconds since `started`.
    used_ms: AtomicU64,
    gives_way: Notify,
}

/// A connection's slot, which is free again when this is dropped.
pub struct Slot {
    connections: Arc<Connections>,
    id: u64,
    connection: Arc<Connection>,
}

/// How to make room for a new connection.
enum Room {
    Closing(u64),
    /// There is no room, so the new connection is refused.
    Refused,
    /// There is no room yet, because all connections of trusted proxies are busy.
    Later,
}

impl Connections {
    pub fn new(
        limits: ConnectionLimits,
        trusted: Vec<AddressRange>,
        metrics: Arc<Metrics>,
    ) -> Self {
        Self {
            limits,
            trusted,
            metrics,
            started: Instant::now(),
            open: Mutex::default(),
            ended: Notify::new(),
        }
    }

    /// Returns a slot for a new connection from this address, or `None` if the connection must be
    /// closed. Waits only for requests of trusted proxies to finish.
    pub async fn take(self: &Arc<Self>, peer: IpAddr) -> Option<Slot> {
        let is_trusted = self.trusted.iter().any(|network| network.contains(peer));
        let client = (!is_trusted).then(|| Client::of(peer));
        loop {
            let ended = self.ended.notified();
            match self.try_take(client.as_ref()) {
                Ok(slot) => return slot,
                Err(()) => drop(tokio::time::timeout(LOOK_AGAIN, ended).await),
            }
        }
    }

    /// Returns `Err` if the caller must try again.
    fn try_take(self: &Arc<Self>, client: Option<&Client>) -> Result<Option<Slot>, ()> {
        let mut open = self.open.lock();
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
        Ok(Some(Slot { connections: Arc::clone(self), id, connection }))
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

impl Client {
    fn of(peer: IpAddr) -> Self {
        let networks = Networks::of(&peer.to_canonical().to_string());
        Self { network: networks.far.into(), address: networks.near.into() }
    }
}

impl Open {
    /// Returns the limit that one more connection of the client would exceed.
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

    /// Removes a connection, unless it is already removed.
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

    /// Finds room for a connection of this client, or of a trusted proxy.
    fn room(&self, new: Option<&Client>) -> Room {
        let trusted = self.connections.len() - self.networks.values().sum::<usize>();
        let busiest = self.networks.iter().max_by_key(|(_, count)| **count);
        match busiest {
            Some((network, count)) if *count >= trusted => self.room_in(network, *count, new),
            _ => self.room_of_trusted(new),
        }
    }

    /// Finds room in the network with the most connections, or in the client's own network if that
    /// has as many.
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

    /// Finds room among the idle connections of trusted proxies.
    fn room_of_trusted(&self, new: Option<&Client>) -> Room {
        match self.longest_idle(|connection| connection.client.is_none()) {
            Some((id, is_busy)) if !is_busy => Room::Closing(id),
            _ if new.is_some() => Room::Refused,
            _ => Room::Later,
        }
    }

    /// Returns the connection that has been idle for longest. If none is idle, returns the one that
    /// has been busy for longest. The boolean is true if the connection is busy.
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

impl Slot {
    /// Waits until the connection must be closed to make room for another one.
    pub async fn gives_way(&self) {
        self.connection.gives_way.notified().await;
    }

    /// Begins a request. It ends when the returned value is dropped.
    pub fn begin_request(self: &Arc<Self>) -> Busy {
        self.connection.is_busy.store(true, Ordering::Relaxed);
        self.used();
        Busy(Arc::clone(self))
    }

    /// Marks the connection as used, for example because the client received bytes of a response.
    pub fn used(&self) {
        let now_ms = self.connections.now_ms();
        self.connection.used_ms.store(now_ms, Ordering::Relaxed);
    }

    /// Counts a connection that is cut because its client doesn't read.
    pub fn is_unread(&self) {
        self.connections.metrics.connection_limited("unread");
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.connections.open.lock().remove(self.id);
        self.connections.ended.notify_one();
    }
}

/// A request that is being handled.
pub struct Busy(Arc<Slot>);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.connection.is_busy.store(false, Ordering::Relaxed);
        self.0.used();
    }
}

#[cfg(test)]
mod tests;
