//! The template of all mails. It renders paragraphs and a link as plain text and as simple HTML
//! without remote content.

/// A mail as text and as HTML.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Rendered {
    pub(super) text: String,
    pub(super) html: String,
}

/// Renders paragraphs, which are separated by empty lines, and below them a link and how to reach
/// support.
pub(super) fn render(
    body: &str,
    link: Option<&str>,
    base_url: &str,
    support_contact: Option<&str>,
) -> Rendered {
    let support = support_contact.map(|contact| format!("Support: {contact}\n"));
    let footer = format!("{}Heliograph, {base_url}", support.unwrap_or_default());
    let paragraphs = body.split("\n\n").map(|paragraph| {
        let lines = escaped(paragraph).replace('\n', "<br>\n");
        format!("<p>{lines}</p>\n")
    });
    let paragraphs: String = paragraphs.collect();
    let (link_text, link_html) = match link {
        Some(link) => {
            let escaped = escaped(link);
            let html = format!("<p><a href=\"{escaped}\">{escaped}</a></p>\n");
            (format!("\n\n{link}"), html)
        }
        None => (String::new(), String::new()),
    };
    Rendered {
        text: format!("{body}{link_text}\n\n-- \n{footer}\n"),
        html: format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<body>\n{paragraphs}{link_html}<p>{}</p>\n\
             </body>\n</html>\n",
            escaped(&footer).replace('\n', "<br>\n")
        ),
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::render;

    #[test]
    fn text_and_html_say_the_same_and_what_people_wrote_is_no_html() {
        let link = "https://sms.example.org/applications/000123";
        let mail = render(
            "Reason: <b>\"no\"</b> & more\n\nSecond.\nLine.",
            Some(link),
            "https://sms.example.org",
            Some("help@example.org\n+266 2231 0000"),
        );
        assert_eq!(
            mail.text,
            "Reason: <b>\"no\"</b> & more\n\nSecond.\nLine.\n\n\
             https://sms.example.org/applications/000123\n\n-- \n\
             Support: help@example.org\n+266 2231 0000\nHeliograph, https://sms.example.org\n"
        );
        assert_eq!(
            mail.html,
            "<!DOCTYPE html>\n<html lang=\"en\">\n<body>\n\
             <p>Reason: &lt;b&gt;&quot;no&quot;&lt;/b&gt; &amp; more</p>\n<p>Second.<br>\nLine.</p>\n\
             <p><a href=\"https://sms.example.org/applications/000123\">\
             https://sms.example.org/applications/000123</a></p>\n\
             <p>Support: help@example.org<br>\n+266 2231 0000<br>\n\
             Heliograph, https://sms.example.org</p>\n</body>\n</html>\n"
        );
    }
}
