//! Staff's decisions about applications and sender names, and the lists that they are based on.

use domain::decision::{ApplicationList, StaffList, Work};
use domain::records::{ApplicationRecord, Paged, SenderCase, WaitingWork};
use domain::support_hours::{SupportHours, UsualTime};
use domain::{SenderName, Timestamp, Zone, sender_name};

use crate::Applications;
use crate::transactions::work;
use crate::zones::zone;
use store::audit::{self, Actor, Change};
use store::error::{Refusal, Result};
use store::{applications, senders, staff_lists, usual_times};

/// The maximum number of cases on a page.
const CASES_MAX: i64 = 100;
/// The maximum number of earlier requests, and of similar names, that are shown with a case.
const BESIDE_MAX: i64 = 5;
/// The period from whose decisions usual times are computed, in milliseconds. At most [`USUAL_MAX`]
/// decisions per shard are read.
const USUAL_MS: i64 = 30 * 24 * 60 * 60 * 1000;
const USUAL_MAX: i64 = 1000;
/// The minimum number of decisions from which a usual time is computed.
const USUAL_MIN: usize = 20;

impl Applications<'_> {
    /// Returns a page of applications for staff.
    ///
    /// # Errors
    /// `InvalidCursor`.
    pub async fn application_list(
        &self,
        list: ApplicationList,
        cursor: Option<&str>,
        limit: i64,
    ) -> Result<Paged<ApplicationRecord>> {
        let after = position(cursor)?;
        let limit = limit.clamp(1, CASES_MAX);
        let found = self.in_each_shard(|shard| async move {
            let mut conn = self.store().read_at(shard).await?;
            applications::list(&mut conn, list, after, limit + 1).await
        });
        let place = |row: &applications::ApplicationRow| match list {
            ApplicationList::Waiting => {
                (row.record.activation_requested_at.map_or(0, Timestamp::unix_ms), row.id.0)
            }
            _ => (0, row.id.0),
        };
        let mut rows: Vec<_> = found.await?.into_iter().flatten().collect();
        rows.sort_by_key(place);
        let page = Paged::of(rows, limit, |row| {
            let (at, id) = place(row);
            format!("{at}-{id}")
        });
        Ok(Paged {
            items: page.items.into_iter().map(|row| self.shown(row)).collect(),
            next: page.next,
        })
    }

    /// Returns a page of the sender names that wait for a decision, oldest request first. Each
    /// comes with the information that staff need to decide.
    ///
    /// # Errors
    /// `InvalidCursor`.
    pub async fn sender_cases(
        &self,
        cursor: Option<&str>,
        limit: i64,
    ) -> Result<Paged<SenderCase>> {
        let (_, after) = position(cursor)?;
        self.sender_cases_after(after, limit).await
    }

    /// Returns a request for a sender name with the information that staff need to decide. `None`
    /// if the request doesn't wait for a decision.
    pub async fn sender_case(&self, id: i64) -> Result<Option<SenderCase>> {
        let found = self.sender_cases_after(id - 1, 1).await?.items.pop();
        Ok(found.filter(|case| case.request.id == id))
    }

    async fn sender_cases_after(&self, after: i64, limit: i64) -> Result<Paged<SenderCase>> {
        let limit = limit.clamp(1, CASES_MAX);
        let reserved = self.staff_list(StaffList::ReservedWords).await?;
        let found = self.in_each_shard(|shard| {
            let reserved = &reserved;
            async move {
                let mut conn = self.store().read_at(shard).await?;
                let mut cases = Vec::new();
                for case in senders::cases(&mut conn, after, limit + 1).await? {
                    let (id, account) = (case.request.id, case.account_id);
                    let earlier = senders::earlier(&mut conn, account, id, BESIDE_MAX).await?;
                    cases.push((
                        account,
                        SenderCase {
                            category: case.category,
                            email: case.email,
                            reserved: sender_name::reserved_in(&case.request.name, reserved),
                            similar: Vec::new(),
                            earlier,
                            request: case.request,
                        },
                    ));
                }
                Ok(cases)
            }
        });
        let mut cases: Vec<_> = found.await?.into_iter().flatten().collect();
        cases.sort_by_key(|(_, case)| case.request.id);
        let mut page = Paged::of(cases, limit, |(_, case)| format!("0-{}", case.request.id));
        let mut conn = self.store().read().await?;
        for (account, case) in &mut page.items {
            if let Ok(name) = SenderName::parse(&case.request.name) {
                let looks = name.looks();
                case.similar = senders::similar(&mut conn, &looks, *account, BESIDE_MAX).await?;
            }
        }
        Ok(Paged { items: page.items.into_iter().map(|(_, case)| case).collect(), next: page.next })
    }

    /// Returns how much work of each kind waits for staff.
    pub async fn waiting_work(&self) -> Result<Vec<WaitingWork>> {
        let now = self.now();
        let mut waiting = Vec::new();
        for work in Work::ALL {
            let found = self.operations().waiting(work, now, now).await?;
            waiting.push(WaitingWork {
                work,
                count: found.count,
                oldest: found.oldest,
                usual: self.usual_answer(work).await?,
            });
        }
        Ok(waiting)
    }

    /// Returns how much work of each kind waits for staff, without the usual times.
    pub async fn pending_counts(&self) -> Result<Vec<(Work, i64)>> {
        let now = self.now();
        let mut counts = Vec::new();
        for work in Work::ALL {
            counts.push((work, self.operations().waiting(work, now, now).await?.count));
        }
        Ok(counts)
    }

    /// Returns how long staff usually take for a kind of work: the median of the last 30 days. With
    /// support hours in the settings, only these hours count. Returns `None` if there were fewer
    /// than [`USUAL_MIN`] decisions, or if the work isn't a decision.
    pub async fn usual_answer(&self, work: Work) -> Result<Option<UsualTime>> {
        let now = self.now();
        let since = now.plus_ms(-USUAL_MS);
        let found = self.in_each_shard(|shard| async move {
            usual_times::of(&mut self.store().read_at(shard).await?, work, since, USUAL_MAX).await
        });
        let found: Vec<_> = found.await?.into_iter().flatten().collect();
        if found.len() < USUAL_MIN {
            return Ok(None);
        }
        let hours = self.support_hours().map(|hours| (hours, hours_zone(hours, now)));
        let took = |(requested, decided): (Timestamp, Timestamp)| match &hours {
            Some((hours, zone)) => hours.ms_between(zone, requested, decided),
            None => decided.ms_since(requested),
        };
        let mut times: Vec<_> = found.into_iter().map(took).collect();
        times.sort_unstable();
        let working_day_ms = hours.as_ref().map(|(hours, _)| hours.day_ms());
        Ok(times.get(times.len() / 2).map(|ms| UsualTime { ms: *ms, working_day_ms }))
    }

    /// Returns the entries of a list that staff maintain.
    pub async fn staff_list(&self, list: StaffList) -> Result<Vec<String>> {
        let lines = staff_lists::lines(&mut self.store().read().await?, list.as_str()).await?;
        let lines = lines.unwrap_or_else(|| list.at_first().to_owned());
        Ok(lines.lines().map(str::to_owned).collect())
    }

    /// Replaces a list that staff maintain. `text` has one entry per line.
    ///
    /// # Errors
    /// `ListInvalid`.
    pub async fn set_staff_list(&self, actor: &Actor, list: StaffList, text: &str) -> Result<()> {
        let (actor, lines) = (*actor, StaffList::entries(text).map_err(Refusal::from)?.join("\n"));
        self.in_transaction(work!(|tx, now| {
            let before = staff_lists::lines(tx, list.as_str()).await?;
            let before = before.unwrap_or_else(|| list.at_first().to_owned());
            staff_lists::set(tx, list.as_str(), &lines).await?;
            let (action, subject) = ("staff_list.set", list.as_str());
            let change = Change::of(&before, &lines);
            audit::insert_change(tx, now, &actor, action, subject, change).await
        }))
        .await
    }
}

/// Returns the zone of support hours. The settings were checked at the start.
fn hours_zone(hours: &SupportHours, now: Timestamp) -> Zone {
    zone(hours.zone(), now).unwrap_or_default()
}

/// Parses the cursor of a page into the time and ID that the page comes after.
fn position(cursor: Option<&str>) -> Result<(i64, i64)> {
    let Some(text) = cursor else {
        return Ok((i64::MIN, 0));
    };
    let parts = text.split_once('-');
    let place = parts.and_then(|(at, id)| Some((at.parse().ok()?, id.parse().ok()?)));
    Ok(place.ok_or(Refusal::InvalidCursor)?)
}
