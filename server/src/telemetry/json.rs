//! Writes log lines as JSON objects, one per line.
//!
//! The fields of the line are at the top. So are those of the spans around it, as `SPAN.FIELD`, but
//! `carrier` is plain everywhere, so that one filter finds all lines about a carrier.

use std::fmt::{self, Write as _};
use std::io::Write as _;

use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime as _, SystemTime};
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::{LookupSpan, Scope};

/// The field that has the same name in all lines.
const CARRIER: &str = "carrier";

/// Writes each event as a JSON object.
pub struct Json<W>(pub W);

/// The fields of an event or a span.
#[derive(Default)]
struct Fields(Map<String, Value>);

impl Visit for Fields {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.0.insert(field.name().to_owned(), value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.0.insert(field.name().to_owned(), value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.0.insert(field.name().to_owned(), value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.0.insert(field.name().to_owned(), value.into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), value.into());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}").into());
    }
}

impl<S, W> Layer<S> for Json<W>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    W: for<'a> MakeWriter<'a> + 'static,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        if let Some(span) = context.span(id) {
            span.extensions_mut().insert(fields);
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        if let Some(span) = context.span(id)
            && let Some(fields) = span.extensions_mut().get_mut::<Fields>()
        {
            values.record(fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut line = Map::new();
        for span in context.event_scope(event).into_iter().flat_map(Scope::from_root) {
            let extensions = span.extensions();
            let fields = extensions.get::<Fields>().into_iter().flat_map(|fields| &fields.0);
            for (name, value) in fields {
                let name = match name.as_str() {
                    CARRIER => CARRIER.to_owned(),
                    name => format!("{}.{name}", span.name()),
                };
                line.insert(name, value.clone());
            }
        }
        let mut fields = Fields(line);
        event.record(&mut fields);
        let Fields(mut line) = fields;
        let mut time = String::new();
        // Writing to memory can't fail.
        let _ = SystemTime.format_time(&mut Writer::new(&mut time));
        let about = event.metadata();
        line.insert("timestamp".to_owned(), time.into());
        line.insert("level".to_owned(), about.level().as_str().into());
        line.insert("target".to_owned(), about.target().into());
        let mut text = ascii(&Value::Object(line).to_string());
        text.push('\n');
        // A line that can't be written is lost, like those in text.
        let _ = self.0.make_writer_for(about).write_all(text.as_bytes());
    }
}

/// Escapes every character beyond ASCII. A terminal may interpret some of them, and the escapes
/// that [`super::lines`] would write for them aren't valid JSON.
fn ascii(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        if matches!(c, ' '..='~') {
            text.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            // Writing to memory can't fail.
            let _ = write!(text, "\\u{unit:04x}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::io::{self, Write};
    use std::sync::{Arc, Mutex};

    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_line_has_the_fields_of_its_spans_and_quotes_any_text() {
        let written = Written::default();
        let writer = written.clone();
        let subscriber = tracing_subscriber::registry().with(Json(move || writer.clone()));
        tracing::subscriber::with_default(subscriber, || {
            let _outer = tracing::error_span!("connection", carrier = "acme", number = 2).entered();
            let _inner = tracing::error_span!("recording").entered();
            let quoted = "\"\u{1b}[2J\u{202e}ж😀\n";
            tracing::warn!(count = 3, up = true, quoted, "a carrier refused submits");
        });
        let bytes = written.0.lock().unwrap().clone();
        let text = String::from_utf8(bytes).unwrap();
        assert!(text.ends_with("}\n") && text.lines().count() == 1, "{text}");
        assert!(text.trim_end().bytes().all(|byte| matches!(byte, b' '..=b'~')), "{text}");
        let line: Value = serde_json::from_str(&text).unwrap();
        let expected = serde_json::json!({
            "level": "WARN",
            "target": "heliograph::telemetry::json::tests",
            "message": "a carrier refused submits",
            "carrier": "acme",
            "connection.number": 2,
            "count": 3,
            "up": true,
            "quoted": "\"\u{1b}[2J\u{202e}ж😀\n",
            "timestamp": line["timestamp"],
        });
        assert_eq!(line, expected);
        assert!(line["timestamp"].as_str().unwrap().ends_with('Z'), "{line}");
    }
}
