//! The table of results: figures, their targets, and whether they met them.

use std::fmt;

/// Column widths. Details are printed below a figure.
const WHAT: usize = 76;
const FIGURE: usize = 12;
const TARGET: usize = 14;

/// A number with its unit.
#[derive(Clone, Copy, Debug)]
pub enum Figure {
    Times(f64),
    PerSecond(f64),
    Seconds(f64),
    Millis(f64),
    Micros(f64),
    Mebibytes(f64),
    Kilobytes(f64),
    Count(f64),
}

/// The target of a figure, in the figure's unit.
#[derive(Clone, Copy, Debug)]
pub enum Target {
    AtLeast(f64),
    AtMost(f64),
    /// For information only.
    None,
}

struct Line {
    what: String,
    result: Result<(Figure, Target), String>,
}

#[derive(Default)]
pub struct Table {
    lines: Vec<Line>,
}

impl Figure {
    pub fn millis(time: std::time::Duration) -> Self {
        Self::Millis(time.as_secs_f64() * 1000.0)
    }

    pub fn mebibytes_of(kib: u64) -> Self {
        Self::Mebibytes(float(kib) / 1024.0)
    }

    fn number(self) -> f64 {
        match self {
            Self::Times(number)
            | Self::PerSecond(number)
            | Self::Seconds(number)
            | Self::Millis(number)
            | Self::Micros(number)
            | Self::Mebibytes(number)
            | Self::Kilobytes(number)
            | Self::Count(number) => number,
        }
    }

    /// Formats a number in the figure's unit, with enough digits to show a narrowly missed target.
    fn text(self, number: f64) -> String {
        match self {
            Self::Times(_) => format!("{number:.2} ×"),
            Self::PerSecond(_) => format!("{number:.0}/s"),
            Self::Seconds(_) => format!("{number:.2} s"),
            Self::Millis(_) => format!("{number:.2} ms"),
            Self::Micros(_) => format!("{number:.1} µs"),
            Self::Mebibytes(_) => format!("{number:.1} MiB"),
            Self::Kilobytes(_) => format!("{number:.0} KB"),
            Self::Count(_) => format!("{number:.0}"),
        }
    }
}

impl Target {
    fn text(self, figure: Figure) -> String {
        match self {
            Self::AtLeast(least) => format!("≥ {}", figure.text(least)),
            Self::AtMost(most) => format!("≤ {}", figure.text(most)),
            Self::None => String::new(),
        }
    }

    fn verdict(self, figure: Figure) -> &'static str {
        let met = match self {
            Self::AtLeast(least) => figure.number() >= least,
            Self::AtMost(most) => figure.number() <= most,
            Self::None => return "",
        };
        if met { "met" } else { "MISSED" }
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = &self.what;
        match &self.result {
            Ok((figure, target)) => {
                let (target_text, verdict) = (target.text(*figure), target.verdict(*figure));
                let figure = figure.text(figure.number());
                let line =
                    format!("{what:<WHAT$} {figure:>FIGURE$}  {target_text:<TARGET$}{verdict}");
                f.write_str(line.trim_end())
            }
            Err(why) => write!(f, "{what:<WHAT$} not measured: {why}"),
        }
    }
}

impl Table {
    /// Prints a figure at once, and keeps it for the summary.
    pub fn add(&mut self, what: impl Into<String>, figure: Figure, target: Target) {
        self.push(what.into(), Ok((figure, target)));
    }

    /// Like [`Table::add`], with lines of details.
    pub fn add_beside(
        &mut self,
        what: impl Into<String>,
        figure: Figure,
        target: Target,
        beside: &[String],
    ) {
        self.add(what, figure, target);
        for text in beside {
            println!("      {text}");
        }
    }

    pub fn not_measured(&mut self, what: impl Into<String>, why: impl Into<String>) {
        self.push(what.into(), Err(why.into()));
    }

    fn push(&mut self, what: String, result: Result<(Figure, Target), String>) {
        let line = Line { what, result };
        println!("{line}");
        self.lines.push(line);
    }

    /// Prints all figures again, without details, and how many targets were met.
    pub fn print(&self) {
        println!("\n== Figures and targets");
        for line in &self.lines {
            println!("{line}");
        }
        let count = |wanted: &str| {
            let verdict = |line: &&Line| match line.result {
                Ok((figure, target)) => target.verdict(figure) == wanted,
                Err(_) => false,
            };
            self.lines.iter().filter(verdict).count()
        };
        println!(
            "{} met, {} missed, {} not measured",
            count("met"),
            count("MISSED"),
            self.lines.iter().filter(|line| line.result.is_err()).count()
        );
    }
}

/// Converts a count, which is always far below 2^52.
pub fn float(count: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    let float = count as f64;
    float
}
