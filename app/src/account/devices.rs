//! `/devices`: the account's signed-in browsers.

use domain::browser::browser_name;
use domain::records::{DeviceRecord, SecurityEventRecord};
use leptos::either::Either;
use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;

use super::PasswordField;
use crate::page_data::PageData;
#[cfg(feature = "ssr")]
use crate::portal_request::{redirect_to, signed_in, step_up};
use crate::problem::Problem;
use crate::ui::{
    AcceptedNotice, BUTTONS, Choice, Field, FormAlert, FormState, Loaded, Page, PostForm,
    StepUpField, SubmitButton, Table, in_zone,
};

/// Loads the account's signed-in browsers.
#[server(prefix = "/fn", endpoint = "devices", input = GetUrl)]
pub async fn load_devices() -> Result<Vec<DeviceRecord>, Problem> {
    let (current, account) = signed_in().await?;
    let token = current.token().unwrap_or_default();
    Ok(current.service().accounts().devices(account.id, &token).await?)
}

/// Signs out one browser, possibly this one.
#[server(prefix = "/fn", endpoint = "sign-out-device")]
pub async fn sign_out_device(
    device: i64,
    #[server(default)] credential: String,
) -> Result<(), Problem> {
    let (current, account) = signed_in().await?;
    let stepped_up = step_up(&current, &account, &credential).await;
    // The page has one such form per device. Only the submitted form shows the step-up field.
    stepped_up.map_err(|problem| problem.typed("device", &device.to_string()))?;
    current.service().accounts().sign_out_device(account.id, device).await?;
    // If it was this browser, the devices page redirects to the sign-in page.
    redirect_to("/devices?signed-out=1")
}

/// Names a device. An empty name removes the name.
#[server(prefix = "/fn", endpoint = "name-device")]
pub async fn name_device(device: i64, #[server(default)] name: String) -> Result<(), Problem> {
    let keep = |problem: Problem| problem.typed("device", &device.to_string()).typed("name", &name);
    let (current, account) = signed_in().await.map_err(keep)?;
    let named = current.service().accounts().name_device(account.id, device, &name).await;
    named.map_err(|error| keep(error.into()))?;
    redirect_to("/devices?named=1")
}

/// Loads the account's security events, newest first.
#[server(prefix = "/fn", endpoint = "security-events", input = GetUrl)]
pub async fn load_security_events() -> Result<Vec<SecurityEventRecord>, Problem> {
    let (current, account) = signed_in().await?;
    Ok(current.service().accounts().security_events(account.id).await?)
}

/// Signs out every browser but this one.
#[server(prefix = "/fn", endpoint = "sign-out-others")]
pub async fn sign_out_others(password: String) -> Result<(), Problem> {
    let (current, account) = signed_in().await?;
    let token = current.token().unwrap_or_default();
    current.service().accounts().sign_out_others(account.id, &password, &token).await?;
    redirect_to("/devices?others-signed-out=1")
}

#[component]
pub fn DevicesPage() -> impl IntoView {
    let one = FormState::new::<SignOutDevice>("device-alert");
    let others = FormState::new::<SignOutOthers>("others-alert");
    let name = FormState::new::<NameDevice>("name-alert");
    let data = PageData::after([one, others, name], || LoadDevices {});
    let render = move |devices: Vec<DeviceRecord>| view! { <Devices devices one others name/> };
    view! { <Loaded data render/> }
}

#[component]
fn Devices(
    devices: Vec<DeviceRecord>,
    one: FormState,
    others: FormState,
    name: FormState,
) -> impl IntoView {
    let events = PageData::new(|| LoadSecurityEvents {});
    let alone = devices.len() < 2;
    view! {
        <Page title="Security">
            <AcceptedNotice parameter="named" sentence="The name is saved."/>
            <AcceptedNotice parameter="signed-out" sentence="The device is signed out."/>
            <AcceptedNotice
                parameter="others-signed-out"
                sentence="All other devices are signed out."
            />
            <p>
                "Password, passkeys and two-factor authentication are on the page "
                <a href="/account#security">"Account"</a> "."
            </p>
            <h2>"Devices"</h2>
            <p>
                "Browsers that are signed in to your account. A session ends after 30 minutes \
                 without use, and after 12 hours in any case."
            </p>
            <FormAlert form=one/>
            {listed(&devices, one)}
            {if alone {
                Either::Left(view! { <p>"No other device is signed in."</p> })
            } else {
                Either::Right(
                    view! {
                        <PostForm form=others>
                            <PasswordField form=others/>
                            <SubmitButton label="Sign out all other devices" form=others/>
                        </PostForm>
                    },
                )
            }}
            <h2>"Names"</h2>
            <p>
                "Give a device a name that tells you which one it is. We recognize the device by \
                 its browser and network, so it keeps the name when it signs in again. A name is \
                 deleted after 90 days without a sign-in. Leave the field empty to remove a name."
            </p>
            <NameForm devices form=name/>
            <h2>"Security events"</h2>
            <Loaded data=events render=|events| happened(&events)/>
        </Page>
    }
}

fn listed(devices: &[DeviceRecord], one: FormState) -> AnyView {
    Table::wide(devices)
        .column("Device", |device| {
            view! {
                // The name may be in a right-to-left script.
                <bdi>{title(device)}</bdi>
                {device.current.then(|| view! { " " <span class="tag">"This device"</span> })}
                <div class="fine">{device.user_agent.clone()}</div>
            }
        })
        .styled("figures", "Address", |device| device.address.clone())
        .time(in_zone("Signed in (UTC)"), |device| device.signed_in_at)
        .time(in_zone("Last seen (UTC)"), |device| device.last_seen_at)
        .styled(BUTTONS, "Action", |device| {
            let id = device.id.to_string();
            let about = format!("signed in at {} UTC", device.signed_in_at.to_table());
            let was_sent = one.was_sent("device", id.clone());
            view! {
                <PostForm form=one inline=true>
                    <input type="hidden" name="device" value=id/>
                    {move || was_sent.get().then(|| view! { <StepUpField form=one/> })}
                    <SubmitButton label="Sign out this device" form=one about/>
                </PostForm>
            }
        })
        .in_region("Signed-in devices")
}

/// The form that names a device.
#[component]
fn NameForm(devices: Vec<DeviceRecord>, form: FormState) -> impl IntoView {
    let options = devices
        .iter()
        .map(|device| {
            let (title, address) = (title(device), &device.address);
            let this = if device.current { ", this device" } else { "" };
            (device.id.to_string(), format!("{title}, {address}{this}"))
        })
        .collect();
    let current = devices.iter().find(|device| device.current);
    let chosen = form
        .typed("device")
        .or_else(|| current.map(|device| device.id.to_string()))
        .unwrap_or_default();
    view! {
        <PostForm form>
            <Choice label="Device" name="device" options chosen/>
            <Field label="Name" name="name" form/>
            <SubmitButton label="Save name" form/>
        </PostForm>
    }
}

fn title(device: &DeviceRecord) -> String {
    let name = device.name.clone();
    name.unwrap_or_else(|| browser_name(&device.user_agent))
}

fn happened(events: &[SecurityEventRecord]) -> AnyView {
    Table::wide(events)
        .column("Event", |event| {
            view! {
                {event.kind.title()}
                <div class="fine">{event.detail.clone()}</div>
            }
        })
        .time(in_zone("At (UTC)"), |event| event.at)
        .styled("figures", "Address", |event| event.address.clone())
        .column("Browser", |event| browser_name(&event.user_agent))
        .in_region("Security events")
}
