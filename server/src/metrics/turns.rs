//! What the turns of the service did, in Prometheus' text format.

use std::fmt::Write as _;

use service::{Histogram, TurnFigures};

/// The figures as text.
pub fn render(figures: &TurnFigures) -> String {
    let mut text = String::new();
    // Writing to a String can't fail.
    let _ = render_into(&mut text, figures);
    text
}

fn render_into(text: &mut String, figures: &TurnFigures) -> std::fmt::Result {
    let turn =
        "Time of a turn: one transaction that writes what waits, from its beginning to its commit.";
    histogram(text, "heliograph_turn_seconds", turn, &figures.turn)?;
    let commit = "Time of a turn's commit, with its sync of the disk.";
    histogram(
        text,
        "heliograph_turn_commit_seconds",
        commit,
        &figures.commit,
    )?;
    let inputs = "heliograph_turn_inputs_total";
    writeln!(
        text,
        "# HELP {inputs} Inputs of turns, by kind.\n# TYPE {inputs} counter"
    )?;
    for (kind, count) in figures.inputs {
        writeln!(text, "{inputs}{{kind=\"{kind}\"}} {count}")?;
    }
    let depth = "heliograph_turn_inbox";
    writeln!(
        text,
        "# HELP {depth} Inputs that wait for the next turn.\n# TYPE {depth} gauge"
    )?;
    let (sends, carriers) = (figures.inbox.sends, figures.inbox.carriers);
    writeln!(
        text,
        "{depth}{{kind=\"send\"}} {sends}\n{depth}{{kind=\"carrier\"}} {carriers}"
    )?;
    for (name, kind, help, value) in [
        (
            "heliograph_turn_repeats_total",
            "counter",
            "Turns done again because another process was in the way.",
            figures.repeated,
        ),
        (
            "heliograph_turn_halvings_total",
            "counter",
            "Turns cut in half to find the input at fault.",
            figures.halved,
        ),
        (
            "heliograph_database_log_bytes",
            "gauge",
            "Bytes of SQLite's log that aren't in its file yet.",
            figures.log_bytes,
        ),
    ] {
        writeln!(
            text,
            "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}"
        )?;
    }
    Ok(())
}

fn histogram(text: &mut String, name: &str, help: &str, values: &Histogram) -> std::fmt::Result {
    writeln!(text, "# HELP {name} {help}\n# TYPE {name} histogram")?;
    for (bound, count) in &values.buckets {
        writeln!(text, "{name}_bucket{{le=\"{bound}\"}} {count}")?;
    }
    let (count, seconds) = (values.count, values.seconds);
    writeln!(text, "{name}_bucket{{le=\"+Inf\"}} {count}")?;
    writeln!(text, "{name}_sum {seconds}\n{name}_count {count}")
}
