//! Carriers, routes and carrier responses for the tests.

use std::time::Instant;

use domain::ids::Shard;
use domain::routing::{Route, Routes};
use domain::{Kind, MessageIdForm, Rewriting};
use service::{CarrierInfo, Claimed, Lease, NamedStates, Network, SubmitOutcome, Submitted};

/// Builds a network with the carriers acme and beta. Each route has a carrier, a priority and a
/// kind of number.
pub fn network(routes: &[(&str, u32, Option<Kind>)]) -> Network {
    let route = |(carrier, priority, kind): &(&str, u32, Option<Kind>)| Route {
        priority: *priority,
        kind: *kind,
        ..Route::to((*carrier).to_owned())
    };
    let info = |name: &str| CarrierInfo {
        name: name.to_owned(),
        sandbox: false,
        binds: true,
        whole: false,
        message_id: Some(MessageIdForm::Text),
        named: NamedStates::default(),
        rewriting: Rewriting::default(),
    };
    Network {
        carriers: vec![info("acme"), info("beta")],
        routes: Routes::new(routes.iter().map(route).collect()),
        country_code: "266".to_owned(),
        default_sender: "Heliograph".to_owned(),
    }
}

/// Builds the result of submitting a message of one segment. [`crate::world::World::record`] sets
/// its lease.
pub fn answered(message: &Claimed, outcome: SubmitOutcome) -> Submitted {
    Submitted {
        id: message.id,
        application_id: message.application_id,
        lease: Lease {
            token: 0,
            shard: Shard::FIRST,
            until: message.expires_at,
            not_after: Instant::now(),
        },
        segments: 1,
        outcomes: vec![(1, outcome)],
    }
}

pub fn taken_as(name: &str) -> SubmitOutcome {
    SubmitOutcome::Accepted { carrier_message_id: Some(name.to_owned()) }
}

pub fn refused() -> SubmitOutcome {
    SubmitOutcome::Refused { error: "refused_by_carrier".to_owned() }
}

pub fn throttled() -> SubmitOutcome {
    SubmitOutcome::Throttled { error: "throttled".to_owned() }
}

pub fn lost() -> SubmitOutcome {
    SubmitOutcome::Unknown { error: "the connection was lost".to_owned() }
}
