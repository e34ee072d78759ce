//! `heliograph doctor`: checks what a server needs, and says what to do about each fault. It
//! changes nothing, and works whether or not the server runs.

use std::path::Path;
use std::time::Duration;

use domain::Timestamp;
use domain::records::{ConnectionRecord, ConnectionState};
use futures_util::future::join_all;
use service::{Clock, Examination, Installation, KeyPlace, OpenError, UselessReceipts};

use super::finding::{COLUMNS, Finding, Verdict};
use super::{CommandError, Output, doctor_site, service_config};
use crate::carrier::http::HttpCarrier;
use crate::carrier::smpp;
use crate::config::Settings;
use crate::config::carriers::{CarrierKind, CarrierSettings};
use crate::data_files::{self, Owner, everybody_reads, shown};
use crate::mail::Mailer;
use crate::tls;

/// Free disk space, in bytes, below which the doctor warns, and below which it reports a fault:
/// SQLite's log alone may take 64 MiB.
const FREE_LOW: u64 = 1 << 30;
const FREE_MIN: u64 = 128 << 20;
/// The age of the last backup above which the doctor warns, as the alert does, in milliseconds.
const BACKUP_AGE_MAX_MS: i64 = 2 * DAY_MS;
const DAY_MS: i64 = 86_400_000;
const HOUR_MS: i64 = 3_600_000;
/// A time before the first release, 2026-01-01, in Unix milliseconds. No correct clock shows it.
const BEFORE_RELEASE_MS: i64 = 1_767_225_600_000;
/// How far clocks may differ, in milliseconds.
const CLOCKS_APART_MS: i64 = 5_000;
/// How far the newest message may be ahead of the clock, in milliseconds.
const NEWEST_AHEAD_MS: i64 = 60_000;
/// How long the mail server may take.
const MAIL_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a connection may take to be bound, in milliseconds.
const BIND_MS: i64 = 10_000;
const SET_CLOCK: &str = "Set the clock, and keep it right with chrony or systemd-timesyncd.";

pub async fn run(settings: &Settings, output: Output) -> Result<(), CommandError> {
    let now = Clock::system().now();
    let base_url = settings.base_url(settings.addr);
    let examined = service::examine(&service_config(settings, base_url)).await;
    let installation = examined.as_ref().ok().and_then(|found| found.installation.as_ref());
    let form_key = installation.map(|found| found.form_key.as_str());

    let mut found = vec![of_settings(settings)];
    found.extend(of_files(settings));
    found.extend(of_site_root(settings));
    found.extend(data_files::folders(settings).iter().map(|folder| of_disk(folder)));
    found.push(of_clock(now, examined.as_ref().ok()));
    found.push(of_database(&examined));
    found.extend(installation.into_iter().flat_map(of_installation));
    let carriers = join_all(settings.carriers.list.iter().map(of_carrier));
    let site = doctor_site::check(settings, form_key, now);
    let (carriers, mail, site) = tokio::join!(carriers, of_mail(settings), site);
    found.extend(carriers.into_iter().flatten());
    let connections = installation.into_iter().flat_map(|found| &found.connections);
    found.extend(connections.filter_map(|connection| of_connection(connection, now)));
    let drained = installation.into_iter().flat_map(|found| &found.drained);
    found.extend(drained.map(|name| {
        let text = format!(
            "it is drained, so it gets no messages. `heliograph carrier resume {name}` ends that"
        );
        Finding::warning(&format!("carrier {name}"), text)
    }));
    let receipts = installation.into_iter().flat_map(|found| &found.useless_receipts);
    found.extend(receipts.flat_map(of_receipts));
    found.push(mail);
    found.extend(site);

    let faults = found.iter().filter(|finding| finding.result == Verdict::Fault).count();
    output.list(found, &COLUMNS)?;
    if faults == 0 {
        Ok(())
    } else {
        Err(CommandError::Refused(format!("checks that found a fault: {faults}")))
    }
}

/// Settings were read and checked before. This reports what had to be left out, and what only
/// `serve` checks.
fn of_settings(settings: &Settings) -> Finding {
    if let Some(fault) = &settings.fault {
        let text = format!(
            "{fault}. Correct it: no process can start or reload its settings. The other checks \
             leave out what can't be read"
        );
        return Finding::fault("settings", text);
    }
    let refused = settings.refuse_sandbox(false).err();
    let refused =
        refused.or_else(|| settings.tls.as_ref().and_then(|tls| tls::acceptor(tls).err()));
    match (refused, &settings.file) {
        (Some(error), _) => Finding::fault("settings", error.to_string()),
        (None, Some(file)) => Finding::ok("settings", format!("{} is valid", shown(file))),
        (None, None) => Finding::ok("settings", "there is no settings file; defaults are used"),
    }
}

fn of_files(settings: &Settings) -> Vec<Finding> {
    const CHECK: &str = "files";
    let folder = shown(&settings.data_dir);
    let owner = match Owner::of(&settings.data_dir) {
        Ok(owner) => owner,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let text = format!("{folder} doesn't exist. The first start creates it");
            return vec![Finding::warning(CHECK, text)];
        }
        Err(error) => {
            let text = format!("{folder}: {error}. Run this as root or as the service's user");
            return vec![Finding::fault(CHECK, text)];
        }
    };
    let faults = [
        data_files::owners_to_repair(settings, owner),
        data_files::permissions_to_repair(settings),
    ];
    let mut found: Vec<Finding> =
        faults.into_iter().flatten().map(|fault| Finding::fault(CHECK, fault)).collect();
    let own = Owner::of_process();
    if own.uid != owner.uid && !own.is_root() {
        let (own, owner) = (own.uid, owner.uid);
        found.push(Finding::warning(
            CHECK,
            format!(
                "{folder} belongs to user {owner}, and this command runs as user {own}. Run it as \
                 root or as the service's user"
            ),
        ));
    }
    if let Some(file) = settings.file.as_deref().filter(|file| !owner.reads(file)) {
        let file = shown(file);
        let text = format!(
            "The mode of {file} keeps user {} from reading it. Run `sudo chgrp {} {file}` and \
             `sudo chmod g+r {file}`",
            owner.uid, owner.gid
        );
        found.push(Finding::warning(CHECK, text));
    }
    let secrets = settings.file.as_deref().into_iter();
    let secrets = secrets.chain(settings.tls.as_ref().map(|tls| tls.key.as_path()));
    found.extend(secrets.filter(|file| everybody_reads(file)).map(|file| {
        let file = shown(file);
        let text = format!(
            "All users can read {file}, which may have secrets. Run `sudo chmod \
            o= {file}`"
        );
        Finding::warning(CHECK, text)
    }));
    if found.is_empty() {
        let text =
            format!("user {} owns the files in {folder}, and others can't read them", owner.uid);
        found.push(Finding::ok(CHECK, text));
    }
    found
}

/// Checks that the portal's files are there.
fn of_site_root(settings: &Settings) -> Option<Finding> {
    (!settings.site_root.join("pkg").is_dir()).then(|| {
        let text = format!(
            "{} has no folder pkg, so the portal has neither styles nor scripts. Set site_root to \
             the folder that the package or `make build` made",
            shown(&settings.site_root)
        );
        Finding::warning("site_root", text)
    })
}

fn of_disk(folder: &Path) -> Finding {
    match data_files::free_bytes(folder) {
        Ok(free) => judge_disk(folder, free),
        Err(error) => Finding::fault("disk", format!("{}: {error}", shown(folder))),
    }
}

fn judge_disk(folder: &Path, free: u64) -> Finding {
    let text = format!("{} MiB are free at {}", free >> 20, shown(folder));
    let advice = "Make room: a server whose disk is full refuses sends";
    if free < FREE_MIN {
        Finding::fault("disk", format!("{text}. {advice}"))
    } else if free < FREE_LOW {
        Finding::warning("disk", format!("{text}. {advice}"))
    } else {
        Finding::ok("disk", text)
    }
}

fn of_clock(now: Timestamp, examined: Option<&Examination>) -> Finding {
    const CHECK: &str = "clock";
    let newest_ms = examined.and_then(|found| Some(found.installation.as_ref()?.newest_ahead_ms));
    let server_ms = examined.and_then(|found| found.clock_ahead_ms);
    if now.unix_ms() < BEFORE_RELEASE_MS {
        let text = format!("it shows {} UTC, which is in the past. {SET_CLOCK}", now.to_table());
        return Finding::fault(CHECK, text);
    }
    if let Some(ms) = newest_ms.filter(|ms| *ms > NEWEST_AHEAD_MS) {
        let s = ms / 1000;
        let text = format!("the newest message is {s} s ahead of it: was it set back? {SET_CLOCK}");
        return Finding::fault(CHECK, text);
    }
    match server_ms {
        Some(ms) if ms.abs() > CLOCKS_APART_MS => {
            let text = format!(
                "it is {ms} ms ahead of the database server's clock, which Heliograph uses. Set \
                 the wrong one, and keep both right with chrony or systemd-timesyncd"
            );
            Finding::warning(CHECK, text)
        }
        Some(ms) => {
            Finding::ok(CHECK, format!("it is {ms} ms ahead of the database server's clock"))
        }
        None => Finding::ok(CHECK, format!("it shows {} UTC", now.to_table())),
    }
}

fn of_database(examined: &Result<Examination, OpenError>) -> Finding {
    const CHECK: &str = "database";
    match examined {
        Ok(Examination { program, installation: Some(_), .. }) => {
            Finding::ok(CHECK, format!("{program}, with a schema for this release"))
        }
        Ok(Examination { program, installation: None, .. }) => {
            Finding::warning(CHECK, format!("{program}, never served. Start the server"))
        }
        Err(error) => Finding::fault(CHECK, error.to_string()),
    }
}

fn of_installation(found: &Installation) -> [Finding; 3] {
    const KEY: &str = "secret key";
    let key = match &found.secret_key {
        Ok(KeyPlace::File(file)) => Finding::ok(KEY, shown(file)),
        Ok(KeyPlace::Database) => Finding::ok(KEY, "it is in the database"),
        Ok(KeyPlace::Nowhere) => Finding::ok(KEY, "it is made when it is first needed"),
        Err(error) => Finding::fault(KEY, error.for_operator()),
    };
    let hold = match found.held_since {
        None if found.is_moved => Finding::warning(
            "hold",
            "the database was restored or copied. The next start holds all messages until \
             `heliograph message reconcile`",
        ),
        None => Finding::ok("hold", "messages aren't held"),
        Some(since) => Finding::warning(
            "hold",
            format!(
                "all messages are held since {} UTC, because a backup was restored. Run \
                 `heliograph message reconcile`",
                since.to_table()
            ),
        ),
    };
    let age_ms = found.backup_age_ms;
    let backup = if age_ms > BACKUP_AGE_MAX_MS {
        let days = age_ms / DAY_MS;
        let text = format!("none for {days} days. Run `heliograph backup` daily, by cron");
        Finding::warning("backup", text)
    } else {
        let hours = age_ms / HOUR_MS;
        Finding::ok("backup", format!("the last one, or the first start, was {hours} hours ago"))
    };
    [key, hold, backup]
}

async fn of_carrier(carrier: &CarrierSettings) -> Vec<Finding> {
    let check = format!("carrier {}", carrier.name);
    match &carrier.kind {
        CarrierKind::Smpp(settings) => {
            let probed = smpp::probe(settings).await.into_iter();
            let finding = |(address, probed)| match probed {
                Ok(()) => Finding::ok(&check, format!("{address} accepts a connection")),
                Err(fault) => Finding::fault(&check, format!("{address}: {fault}")),
            };
            probed.map(finding).collect()
        }
        CarrierKind::Http(settings) => {
            let probed = match HttpCarrier::new((**settings).clone()) {
                Ok(carrier) => carrier.probe().await.map_err(|fault| fault.to_string()),
                Err(error) => Err(error.to_string()),
            };
            vec![match probed {
                Ok(()) => Finding::ok(&check, "its host answers; no message was sent"),
                Err(fault) => Finding::fault(&check, fault),
            }]
        }
        CarrierKind::Sandbox => Vec::new(),
    }
}

/// Reports the state that a running process has stored for a connection, unless it is bound.
fn of_connection(connection: &ConnectionRecord, now: Timestamp) -> Option<Finding> {
    if connection.state == ConnectionState::Bound {
        return None;
    }
    // It takes a moment to bind.
    let is_new = now.ms_since(connection.since) < BIND_MS && connection.last_error.is_none();
    if is_new {
        return None;
    }
    let mut text = format!(
        "connection {} of process {} is {} since {} UTC",
        connection.number,
        connection.node,
        connection.state.as_str(),
        connection.since.to_table()
    );
    if let Some(error) = &connection.last_error {
        text = format!("{text}: {error}");
    }
    Some(Finding::fault(&format!("carrier {}", connection.carrier), text))
}

/// Warns about a carrier's receipts that match no message or have an unknown state.
fn of_receipts(receipts: &UselessReceipts) -> Vec<Finding> {
    let UselessReceipts { carrier, unmatched, unknown_state } = receipts;
    let check = format!("carrier {carrier}");
    let unmatched = (*unmatched > 0).then(|| {
        format!(
            "receipts of the last day that match no message: {unmatched}. `heliograph carrier \
             receipts {carrier} --unmatched` says why, and which message_id would match. Set it \
             and run `heliograph carrier reload`"
        )
    });
    let unknown = (*unknown_state > 0).then(|| {
        format!(
            "receipts of the last day with an unknown state: {unknown_state}. `heliograph carrier \
             receipts {carrier}` lists them. Ask the carrier what the state means, set it in \
             heliograph.toml, and run `heliograph carrier reload`"
        )
    });
    unmatched.into_iter().chain(unknown).map(|text| Finding::warning(&check, text)).collect()
}

async fn of_mail(settings: &Settings) -> Finding {
    const CHECK: &str = "mail";
    let Some(server) = &settings.mail else {
        let text = "smtp_url isn't set, so mails are only kept for staff. Set it";
        return Finding::warning(CHECK, text);
    };
    match Mailer::with_timeout(server, MAIL_TIMEOUT).check().await {
        Ok(()) => Finding::ok(CHECK, "the mail server accepts mails"),
        Err(refused) => {
            let text = format!("{}. Check smtp_url and the mail server", refused.why);
            Finding::fault(CHECK, text)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn little_room_and_wrong_clocks_are_found() {
        let folder = Path::new("/data");
        for (free, verdict) in
            [(FREE_LOW, Verdict::Ok), (FREE_LOW - 1, Verdict::Warning), (0, Verdict::Fault)]
        {
            assert_eq!(judge_disk(folder, free).result, verdict, "{free}");
        }
        let examined = |clock_ahead_ms, newest_ahead_ms| Examination {
            program: String::new(),
            clock_ahead_ms,
            installation: Some(Installation {
                newest_ahead_ms,
                secret_key: Ok(KeyPlace::Nowhere),
                held_since: None,
                is_moved: false,
                drained: Vec::new(),
                backup_age_ms: 0,
                form_key: String::new(),
                connections: Vec::new(),
                useless_receipts: Vec::new(),
            }),
        };
        let now = Timestamp::from_unix_ms(BEFORE_RELEASE_MS);
        for (at, server_ms, newest_ms, verdict) in [
            (now, None, -1, Verdict::Ok),
            (now, Some(-4000), 0, Verdict::Ok),
            (now, Some(-6000), 0, Verdict::Warning),
            (now, Some(0), 61_000, Verdict::Fault),
            (now.plus_ms(-1), None, 0, Verdict::Fault),
        ] {
            let found = of_clock(at, Some(&examined(server_ms, newest_ms)));
            assert_eq!(found.result, verdict, "{found:?}");
        }
    }
}
