//! `heliograph distribute`.

use serde::Serialize;
use service::{Distributed, DistributionPlan, DistributionStep, Service};

use super::output::table;
use super::{CommandError, Output, service_config};
use crate::config::Settings;
use crate::json::shown;

/// A step or the result, as the command line shows it. In JSON, each is one line.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Shown {
    Plan(Plan),
    Step(String),
    Distributed { shards: i64, workers: Vec<Shards> },
}

shown! {
    struct Plan from plan: DistributionPlan {
        shards: i64 = plan.shards,
        workers: usize = plan.workers,
        citus_shards: usize = plan.citus_shards,
        copied_tables: Vec<String> = plan.copied,
        distributed_tables: Vec<String> = plan.distributed,
        applications_that_move: i64 = plan.applications,
    }
}

#[derive(Serialize)]
struct Shards {
    worker: String,
    shards: Vec<i64>,
}

impl From<DistributionStep> for Shown {
    fn from(step: DistributionStep) -> Self {
        match step {
            DistributionStep::Planned(plan) => Self::Plan(Plan::from(plan)),
            DistributionStep::Done(step) => Self::Step(step),
        }
    }
}

impl From<Distributed> for Shown {
    fn from(Distributed { shards, workers }: Distributed) -> Self {
        let workers = workers.into_iter();
        Self::Distributed {
            shards,
            workers: workers.map(|(worker, shards)| Shards { worker, shards }).collect(),
        }
    }
}

pub async fn run(settings: &Settings, shards: i64, output: Output) -> Result<(), CommandError> {
    let notify = |step: DistributionStep| {
        // The work continues even if nobody reads the output.
        if let Err(error) = output.print(&Shown::from(step), human) {
            tracing::warn!(%error, "a step can't be printed");
        }
    };
    let config = service_config(settings, settings.base_url(settings.addr));
    let distributed = Service::distribute(&config, shards, &notify).await?;
    Ok(output.print(&Shown::from(distributed), human)?)
}

fn human(shown: &Shown) -> String {
    match shown {
        Shown::Plan(plan) => format!(
            "{} shards over {} workers, in {} Citus shards; {} applications get another shard.\n\
             To copy to every server: {}.\nTo distribute: {}.",
            plan.shards,
            plan.workers,
            plan.citus_shards,
            plan.applications_that_move,
            names(&plan.copied_tables),
            names(&plan.distributed_tables),
        ),
        Shown::Step(step) => step.clone(),
        Shown::Distributed { workers, .. } => table(
            workers,
            &[
                ("WORKER", |worker| worker.worker.clone()),
                ("SHARDS", |worker| {
                    let shards: Vec<_> = worker.shards.iter().map(i64::to_string).collect();
                    shards.join(", ")
                }),
            ],
        ),
    }
}

fn names(tables: &[String]) -> String {
    if tables.is_empty() {
        return "nothing more".to_owned();
    }
    tables.join(", ")
}
