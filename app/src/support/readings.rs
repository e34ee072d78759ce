//! What the server alone renders of the carriers: nothing in it waits for a click.

use domain::Timestamp;
use domain::records::{CarrierRecord, CarrierState, ConnectionRecord};
use leptos::prelude::*;

use crate::ui::{Moment, Rendered, StateMark};

/// The contents of the staff's pages.
pub fn contents(carriers: &[CarrierRecord]) -> Rendered {
    let in_state = |state| carriers.iter().filter(|c| c.state == state).count();
    let counts = [CarrierState::Up, CarrierState::Down, CarrierState::Drained]
        .into_iter()
        .map(|state| (state, in_state(state)))
        .filter(|(_, count)| *count > 0)
        .map(|(state, count)| {
            view! {
                <li>
                    {format!("{count} ")} <StateMark tone=state word=state.as_str()/>
                </li>
            }
        })
        .collect_view();
    Rendered::of(view! {
        <h2>
            <a href="/support/carriers">"Carriers"</a>
        </h2>
        <p>"Who takes messages from us: their connections, and what waits for them."</p>
        <ul>{counts}</ul>
    })
}

/// How the carriers are said to be.
pub fn spoken(carriers: &[CarrierRecord]) -> String {
    let said: Vec<_> = (carriers.iter())
        .map(|carrier| format!("{} is {}", carrier.name, carrier.state.as_str()))
        .collect();
    format!("{}.", said.join(", "))
}

/// A carrier's readings.
pub fn readings(carrier: &CarrierRecord, now: Timestamp) -> Rendered {
    let (parked, matched) = (carrier.receipts_parked, carrier.receipts_matched);
    let oldest = carrier.oldest_waiting_at.map(|at| age(now.ms_since(at)));
    let since = carrier
        .drained_at
        .map(|at| view! { <span class="fine">" since " <Moment at/></span> });
    Rendered::of(view! {
        <dl class="facts">
            <div>
                <dt>"State"</dt>
                <dd>
                    <StateMark tone=carrier.state word=carrier.state.as_str()/>
                    {since}
                </dd>
            </div>
            <div>
                <dt>"Waiting messages"</dt>
                <dd class="figures">{carrier.waiting.to_string()}</dd>
            </div>
            <div>
                <dt>"Age of the oldest"</dt>
                <dd class="figures">{oldest.unwrap_or_else(|| "none waits".to_owned())}</dd>
            </div>
            <div>
                <dt>"Receipts for unknown messages"</dt>
                <dd class="figures">{format!("{parked} parked, {matched} matched later")}</dd>
            </div>
        </dl>
    })
}

/// A carrier's connections.
pub fn connections(carrier: &CarrierRecord) -> Rendered {
    if carrier.connections.is_empty() {
        return Rendered::of(view! {
            <p class="empty">"No running process tells of a connection to this carrier."</p>
        });
    }
    Rendered::of(view! {
        <table class="stacks">
            <thead>
                <tr>
                    <th scope="col">"Connection"</th>
                    <th scope="col">"State"</th>
                    <th scope="col">"Since (UTC)"</th>
                    <th scope="col" class="amount">
                        "In flight"
                    </th>
                    <th scope="col" class="amount">
                        "Per second"
                    </th>
                    <th scope="col" class="amount">
                        "Throttled"
                    </th>
                    <th scope="col">"Last error"</th>
                </tr>
            </thead>
            <tbody>{carrier.connections.iter().map(row).collect_view()}</tbody>
        </table>
    })
}

fn row(connection: &ConnectionRecord) -> impl IntoView + use<> {
    let window = format!("{} of {}", connection.in_flight, connection.window);
    view! {
        <tr>
            <td data-label="Connection" class="figures">
                {format!("{}.{}", connection.node, connection.number)}
            </td>
            <td data-label="State">
                <StateMark tone=connection.state word=connection.state.as_str()/>
            </td>
            <td data-label="Since (UTC)" class="figures">
                <Moment at=connection.since/>
            </td>
            <td data-label="In flight" class="amount">{window}</td>
            <td data-label="Per second" class="amount">{connection.rate.to_string()}</td>
            <td data-label="Throttled" class="amount">{connection.throttled.to_string()}</td>
            <td data-label="Last error">
                {connection.last_error.clone().unwrap_or_else(|| "none".to_owned())}
            </td>
        </tr>
    }
}

/// A span of time in its two largest units.
fn age(ms: i64) -> String {
    let seconds = ms.max(0) / 1000;
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, _) => format!("{minutes} min {} s", seconds % 60),
        (0, _, _) => format!("{hours} h {} min", minutes % 60),
        _ => format!("{days} d {} h", hours % 24),
    }
}
