use std::time::Duration;

use domain::Timestamp;
use service::OutgoingMail;
use tokio::net::TcpListener;

use super::{MailServer, Mailer};

/// The mail server accepts the connection, but never answers.
#[tokio::test]
async fn a_mail_server_that_hangs_is_left() {
    let hanging = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("smtp://{}", hanging.local_addr().unwrap());
    let server = MailServer::parse(&url, "sms@example.org").unwrap();
    let mail = OutgoingMail {
        id: 1,
        attempts: 1,
        recipient: "one@example.org".to_owned(),
        subject: "x".to_owned(),
        text: "x".to_owned(),
        html: "x".to_owned(),
        created_at: Timestamp::from_unix_ms(0),
        secret: None,
    };
    let mailer = Mailer::with_timeout(&server, Duration::from_millis(100));
    let not_sent = mailer.send(&mail).await.unwrap_err();
    assert!(!not_sent.for_good, "{not_sent:?}");
    let unknown = OutgoingMail { recipient: "no address".to_owned(), ..mail };
    let mailer = Mailer::new(&server);
    assert!(mailer.send(&unknown).await.unwrap_err().for_good);
}

#[test]
fn only_a_mail_server_on_this_machine_needs_no_tls() {
    let tls = |url: &str| {
        let server = MailServer::parse(url, "Heliograph <sms@example.org>").unwrap();
        let shown = format!("{:?}", server.builder);
        ["tls: None", "tls: Required", "tls: Wrapper"]
            .into_iter()
            .find(|tls| shown.contains(tls))
            .unwrap_or_else(|| panic!("{shown}"))
    };
    for url in ["smtp://localhost", "smtp://127.0.0.1:2525", "smtp://[::1]"] {
        assert_eq!(tls(url), "tls: None", "{url}");
    }
    for url in ["smtp://mail.example.org", "smtp://u:p@10.0.0.1", "smtp://localhost.example.org"] {
        assert_eq!(tls(url), "tls: Required", "{url}");
    }
    assert_eq!(tls("smtps://u:p@mail.example.org"), "tls: Wrapper");
}

#[test]
fn what_cant_be_used_is_refused_without_being_quoted() {
    for url in [
        "mail.example.org",
        "http://u:hidden@mail.example.org",
        "smtp://",
        "smtp://u:hidden@mail.example.org?tls=opportunistic",
        "smtp://u:hidden@mail.example.org/x",
        "smtp://u:hidden@mail.example.org:99999",
    ] {
        let error = MailServer::parse(url, "sms@example.org").unwrap_err();
        let words = error.to_string();
        assert!(words.contains("smtp_url") && !words.contains("hidden"), "{url}: {words}");
    }
    let error = MailServer::parse("smtp://localhost", "nobody").unwrap_err();
    assert!(error.to_string().contains("mail_from"));
}
