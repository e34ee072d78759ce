//! `heliograph carrier test` and `carrier trace`.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use domain::Timestamp;
use serde::Serialize;
use service::{
    ANSWERS_PAUSE, ANSWERS_TIMEOUT, Actor, AnswerState, CarrierCommand, CommandAnswer, Service,
    TestCommand, TraceCommand,
};

use super::pcap::Capture;
use super::{CommandError, Output};
use crate::json::DateTime;

/// How long a test may take: its answers, and then its receipts.
const TEST_TIMEOUT: Duration = Duration::from_mins(6);

/// The result of a test.
#[derive(Serialize)]
struct Tested {
    carrier: String,
    /// Whether the message was delivered.
    ok: bool,
    steps: Vec<Step>,
}

#[derive(Serialize)]
struct Step {
    at: DateTime,
    text: String,
}

/// A PDU of a trace.
#[derive(Serialize)]
struct Traced {
    at: DateTime,
    /// The number of the process.
    node: i64,
    connection: String,
    sent: bool,
    pdu: String,
}

/// The answers to a command, as they come.
struct Answers<'a> {
    service: &'a Service,
    id: i64,
    seen: BTreeSet<(i64, i64)>,
}

impl Answers<'_> {
    /// Waits briefly, and returns the new answers.
    async fn next(&mut self) -> Result<Vec<CommandAnswer>, CommandError> {
        tokio::time::sleep(ANSWERS_PAUSE).await;
        let mut answers = self.service.delivery().command_answers(self.id).await?;
        answers.retain(|answer| self.seen.insert((answer.node, answer.number)));
        Ok(answers)
    }
}

/// Sends a test message through a running process, and prints what happens to it.
pub async fn test(
    service: &Service,
    test: TestCommand,
    output: Output,
) -> Result<(), CommandError> {
    let carrier = test.carrier.clone();
    let delivery = service.delivery();
    let command = CarrierCommand::Test(test);
    let (id, processes) = delivery.give_command(&Actor::CommandLine, command).await?;
    let mut answers = Answers { service, id, seen: BTreeSet::new() };
    let followed = follow_test(&mut answers, processes, output).await;
    delivery.forget_command(id).await?;
    let (ok, steps) = followed?;
    if output.is_json() {
        output.print(&Tested { carrier, ok, steps }, |_| String::new())?;
    }
    if ok { Ok(()) } else { Err(CommandError::Refused("the test failed".to_owned())) }
}

async fn follow_test(
    answers: &mut Answers<'_>,
    processes: usize,
    output: Output,
) -> Result<(bool, Vec<Step>), CommandError> {
    let begun = Instant::now();
    let (mut steps, mut refusals, mut is_taken) = (Vec::new(), Vec::new(), false);
    loop {
        for CommandAnswer { at, state, text, .. } in answers.next().await? {
            if state == AnswerState::Refused && !is_taken {
                refusals.push(text);
                continue;
            }
            is_taken = true;
            show_step(output, at, &text)?;
            steps.push(Step { at: DateTime(at), text });
            if state != AnswerState::Going {
                return Ok((state == AnswerState::Done, steps));
            }
        }
        // The process that runs the command may answer later than those that refuse it.
        let all_refused = refusals.len() >= processes;
        let timeout = if is_taken { TEST_TIMEOUT } else { ANSWERS_TIMEOUT };
        if !is_taken && all_refused || begun.elapsed() > timeout {
            let why = refusals.into_iter().next();
            let why =
                why.unwrap_or_else(|| "no process answered: is the server running?".to_owned());
            return Err(CommandError::Refused(why));
        }
    }
}

fn show_step(output: Output, at: Timestamp, text: &str) -> Result<(), CommandError> {
    if output.is_json() {
        return Ok(());
    }
    Ok(output.print(&(), |()| format!("{}  {text}", time(at)))?)
}

/// Returns the time of the day in UTC, with milliseconds.
fn time(at: Timestamp) -> String {
    let text = at.to_table();
    let time = text.split(' ').next_back().unwrap_or_default();
    format!("{time}.{:03}", at.unix_ms().rem_euclid(1000))
}

/// Prints the PDUs on the connections to a carrier, of all running processes.
pub async fn trace(
    service: &Service,
    trace: TraceCommand,
    pcap: Option<&Path>,
    output: Output,
) -> Result<(), CommandError> {
    let delivery = service.delivery();
    let longest = Duration::from_secs(trace.seconds) + ANSWERS_TIMEOUT;
    let command = CarrierCommand::Trace(trace);
    let (id, processes) = delivery.give_command(&Actor::CommandLine, command).await?;
    let mut answers = Answers { service, id, seen: BTreeSet::new() };
    let mut capture = Capture::new();
    let followed = follow_trace(&mut answers, (processes, longest), &mut capture, output).await;
    delivery.forget_command(id).await?;
    let traced = followed?;
    if output.is_json() {
        output.print(&traced, |_| String::new())?;
    }
    if let Some(file) = pcap {
        std::fs::write(file, capture.into_bytes()).map_err(|error| {
            CommandError::Refused(format!("can't write {}: {error}", file.display()))
        })?;
    }
    Ok(())
}

async fn follow_trace(
    answers: &mut Answers<'_>,
    (processes, longest): (usize, Duration),
    capture: &mut Capture,
    output: Output,
) -> Result<Vec<Traced>, CommandError> {
    let begun = Instant::now();
    let (mut traced, mut ended, mut refusal, mut has_begun) = (Vec::new(), 0, None, false);
    while ended < processes {
        for CommandAnswer { node, state, text, at, .. } in answers.next().await? {
            match state {
                AnswerState::Going => {
                    has_begun = true;
                    for line in text.lines() {
                        traced.extend(show_pdu(node, line, capture, output)?);
                    }
                }
                AnswerState::Done => {
                    ended += 1;
                    show_step(output, at, &format!("process {node}: {text}"))?;
                }
                AnswerState::Refused => {
                    ended += 1;
                    refusal = Some(text);
                }
            }
        }
        let timeout = if has_begun { longest } else { ANSWERS_TIMEOUT };
        if begun.elapsed() > timeout {
            break;
        }
    }
    if has_begun {
        return Ok(traced);
    }
    let silent = || "no process answered: is the server running?".to_owned();
    Err(CommandError::Refused(refusal.unwrap_or_else(silent)))
}

/// Prints a line of a process's answer, and adds the PDU to the capture.
fn show_pdu(
    node: i64,
    line: &str,
    capture: &mut Capture,
    output: Output,
) -> Result<Option<Traced>, CommandError> {
    let mut words = line.split(' ');
    let mut word = || words.next().unwrap_or_default();
    let at_ms: i64 = word().parse().unwrap_or_default();
    let connection = match (word(), word()) {
        (number, "0") => number.to_owned(),
        (number, _) => format!("{number} (receiver)"),
    };
    let sent = word() == ">";
    let Ok(octets) = hex::decode(word()) else {
        return Ok(None);
    };
    let at = Timestamp::from_unix_ms(at_ms);
    let pdu = ::smpp::trace::describe(&octets);
    let arrow = if sent { '>' } else { '<' };
    show_step(output, at, &format!("{node}.{connection} {arrow} {pdu}"))?;
    capture.add(&format!("{node}.{connection}"), at_ms, sent, &octets);
    Ok(Some(Traced { at: DateTime(at), node, connection, sent, pdu }))
}
