//! `/devices`: the browsers in which an account is signed in.

use domain::records::DeviceRecord;
use leptos::either::Either;
use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;

use crate::client::call;
#[cfg(feature = "ssr")]
use crate::portal_request::signed_in;
use crate::problem::Problem;
use crate::ui::{BUTTONS, FormAlert, FormState, Loaded, Moment, Page, PostForm, Table};

/// The browsers in which the account is signed in.
///
/// # Errors
/// When nobody is signed in, or the service fails.
#[server(prefix = "/fn", endpoint = "devices", input = GetUrl)]
pub async fn load_devices() -> Result<Vec<DeviceRecord>, Problem> {
    let (current, account) = signed_in().await?;
    let token = current.token().unwrap_or_default();
    Ok(current.service().devices(account.id, &token).await?)
}

/// Signs one browser out; it may be this one.
///
/// # Errors
/// When nobody is signed in, there is no such device, or the service fails.
#[server(prefix = "/fn", endpoint = "sign-out-device")]
pub async fn sign_out_device(device: i64) -> Result<(), Problem> {
    let (current, account) = signed_in().await?;
    current
        .service()
        .sign_out_device(account.id, device)
        .await?;
    // When it was this browser, the devices page leads to the sign-in page.
    leptos_axum::redirect("/devices");
    Ok(())
}

/// Signs every browser but this one out.
///
/// # Errors
/// When nobody is signed in, or the service fails.
#[server(prefix = "/fn", endpoint = "sign-out-others")]
pub async fn sign_out_others() -> Result<(), Problem> {
    let (current, account) = signed_in().await?;
    let token = current.token().unwrap_or_default();
    current
        .service()
        .sign_out_others(account.id, &token)
        .await?;
    leptos_axum::redirect("/devices");
    Ok(())
}

#[component]
pub fn DevicesPage() -> impl IntoView {
    let one = FormState::new::<SignOutDevice>("device-alert");
    let others = FormState::new::<SignOutOthers>("others-alert");
    let data = Resource::new(
        move || (one.accepted.get(), others.accepted.get()),
        |_| call(LoadDevices {}),
    );
    let render = move |devices: Vec<DeviceRecord>| view! { <Devices devices one others/> };
    view! { <Loaded data render/> }
}

#[component]
fn Devices(devices: Vec<DeviceRecord>, one: FormState, others: FormState) -> impl IntoView {
    let alone = devices.len() < 2;
    view! {
        <Page title="Devices">
            <p class="lead">
                "Browsers that are signed in to your account. A session ends after 30 minutes \
                 without use, and after 12 hours in any case."
            </p>
            <FormAlert form=one/>
            <FormAlert form=others/>
            {listed(&devices, one)}
            {if alone {
                Either::Left(view! { <p>"No other device is signed in."</p> })
            } else {
                Either::Right(
                    view! {
                        <PostForm form=others inline=true>
                            <button type="submit" class="button button-primary">
                                "Sign out all other devices"
                            </button>
                        </PostForm>
                    },
                )
            }}
        </Page>
    }
}

fn listed(devices: &[DeviceRecord], one: FormState) -> AnyView {
    Table::wide(devices)
        .column("Device", |device| {
            view! {
                {browser_name(&device.user_agent)}
                {device.current.then(|| view! { " " <span class="tag">"This device"</span> })}
                <div class="fine">{device.user_agent.clone()}</div>
            }
        })
        .styled("figures", "Address", |device| device.address.clone())
        .styled("figures", "Signed in (UTC)", |device| {
            view! { <Moment at=device.signed_in_at/> }
        })
        .styled("figures", "Last seen (UTC)", |device| {
            view! { <Moment at=device.last_seen_at/> }
        })
        .styled(BUTTONS, "Action", |device| {
            let id = device.id.to_string();
            view! {
                <PostForm form=one inline=true>
                    <input type="hidden" name="device" value=id/>
                    <button type="submit" class="button">
                        "Sign out this device"
                    </button>
                </PostForm>
            }
        })
        .in_region("Signed-in devices")
}

/// Browser and operating system, as far as the user agent names them. The page shows the whole user
/// agent below.
fn browser_name(user_agent: &str) -> String {
    const BROWSERS: [(&str, &str); 5] = [
        ("Edg/", "Edge"),
        ("OPR/", "Opera"),
        ("Firefox/", "Firefox"),
        // The user agents of the browsers above name these two browsers too.
        ("Chrome/", "Chrome"),
        ("Safari/", "Safari"),
    ];
    const SYSTEMS: [(&str, &str); 6] = [
        ("Android", "Android"),
        ("iPhone", "iPhone"),
        ("iPad", "iPad"),
        ("Windows", "Windows"),
        ("Mac OS X", "macOS"),
        ("Linux", "Linux"),
    ];
    let named = |table: &[(&str, &'static str)]| {
        table
            .iter()
            .find(|(sign, _)| user_agent.contains(sign))
            .map(|(_, name)| *name)
    };
    match (named(&BROWSERS), named(&SYSTEMS)) {
        (Some(browser), Some(system)) => format!("{browser} on {system}"),
        (Some(browser), None) => browser.to_owned(),
        _ => "Unknown browser".to_owned(),
    }
}
