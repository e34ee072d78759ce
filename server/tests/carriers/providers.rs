//! The settings in `deploy/carriers`, each against a scripted copy of the provider's API.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;

use serde_json::{Value, json};
use testing::client::{Answer, posted};
use testing::harness::{Place, TestServer, until};
use url::form_urlencoded;

use crate::started::Started;
use crate::upstream::{Reply, Request, Upstream};

const KEY: &str = "k&y";
const SECRET: &str = "a-secret-of-the-tests";
const HANDSET: &str = "+26657000099";
const OURS: &str = "26650000009";

/// How a provider posts to us.
enum Post {
    /// With the parameters in the query.
    Get(&'static str),
    Form(&'static str),
    Json(Value),
}

/// The API of a provider. `$ID` stands for the ID of a message.
struct Provider {
    /// The name of the file, and of the carrier.
    name: &'static str,
    /// The beginning of the URL in the file.
    url: &'static str,
    accepted: (u16, &'static str),
    /// Answers with the error of the message.
    refused: &'static [(u16, &'static str, &'static str)],
    throttled: &'static [(u16, &'static str)],
    /// Answers after which all messages wait.
    held: &'static [(u16, &'static str)],
    /// An answer, and the error that the message's timeline shows.
    retried: (u16, &'static str, &'static str),
    /// Receipts with the status and the error of the message.
    receipts: Vec<(Post, &'static str, Option<&'static str>)>,
    /// Posts of a message from the handset.
    inbound: Post,
    /// Where a request names the URL for receipts.
    receipt_url: fn(&Request) -> Option<String>,
}

/// The settings of the file, with the provider at this address.
fn settings(provider: &Provider, address: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/carriers");
    let text = std::fs::read_to_string(folder.join(format!("{}.toml", provider.name))).unwrap();
    assert!(text.contains(provider.url));
    let text = text.replace(provider.url, &format!("http://{address}"));
    let lines = text.lines().map(|line| match line.split(' ').next() {
        Some("password_file") => format!("password = \"{KEY}\""),
        Some("secret_file") => format!("secret = \"{SECRET}\""),
        _ => line.to_owned(),
    });
    let lines: Vec<String> = lines.collect();
    lines.join("\n")
}

/// Returns the parameters of a form or query.
fn pairs(text: &str) -> BTreeMap<String, String> {
    form_urlencoded::parse(text.as_bytes()).into_owned().collect()
}

fn query(request: &Request) -> BTreeMap<String, String> {
    let target = request.first_line().split(' ').nth(1).unwrap();
    pairs(target.split_once('?').unwrap().1)
}

/// Returns the number of the message, which the URL or the body has.
fn number(request: &Request) -> String {
    let text = format!("{} {}", request.first_line(), request.body);
    let at = text.find("266570").unwrap();
    text[at..at + 11].to_owned()
}

/// The answers to the requests for each number. Further requests are accepted.
type Answers = BTreeMap<String, Vec<(u16, String)>>;

struct Run {
    provider: Provider,
    upstream: Upstream,
    started: Started,
    base_url: String,
}

impl Run {
    fn start(provider: Provider) -> Self {
        let mut answers = Answers::new();
        let faults = (provider.refused.iter().map(|(status, body, _)| (*status, *body)))
            .chain(provider.throttled.iter().chain(provider.held).copied())
            .chain([(provider.retried.0, provider.retried.1)]);
        for (number, (status, body)) in (26_657_000_101_u64..).zip(faults) {
            answers.insert(number.to_string(), vec![(status, body.to_owned())]);
        }
        let (status, body) = provider.accepted;
        let answers = Mutex::new(answers);
        let upstream = Upstream::start_with("127.0.0.1:0", move |request, _| {
            let number = number(request);
            let next = answers.lock().unwrap().get_mut(&number).and_then(Vec::pop);
            let accepted = || (status, body.replace("$ID", &format!("id{number}")));
            let (status, body) = next.unwrap_or_else(accepted);
            Reply::Answer(status, body)
        });
        let place = Place::new();
        let keys = place.funded("a@example.org", "100");
        let address = Upstream::nobody();
        let base_url = format!("http://{address}");
        let text = settings(&provider, &upstream.address);
        let text = format!("base_url = \"{base_url}\"\n{text}\n");
        std::fs::write(place.path().join("heliograph.toml"), text).unwrap();
        let server = TestServer::start(place, &[], &[("HELIOGRAPH_ADDR", &address)]);
        Self { provider, upstream, started: Started { server, keys }, base_url }
    }

    /// Returns the requests for a number.
    fn requests(&self, wanted: &str) -> Vec<Request> {
        let mut requests = self.upstream.requests();
        requests.retain(|request| number(request) == wanted);
        requests
    }

    /// Sends a message that the provider accepts, and returns the transaction ID and the request.
    fn accepted(&self, number: &str, text: &str) -> (String, Request) {
        let transid = self.started.send(number, text);
        self.started.until(&transid, "submitted");
        let mut requests = self.requests(&format!("266{number}"));
        assert_eq!(requests.len(), 1);
        (transid, requests.remove(0))
    }

    fn post(&self, target: &str, post: &Post, id: &str) -> Answer {
        let server = &self.started.server;
        match post {
            Post::Get(query) => server.get(&format!("{target}{}", query.replace("$ID", id))),
            Post::Form(body) => {
                let kind = "application/x-www-form-urlencoded";
                server.exchange(&posted(target, kind, body.replace("$ID", id).as_bytes()))
            }
            Post::Json(body) => {
                let body = body.to_string().replace("$ID", id);
                server.exchange(&posted(target, "application/json", body.as_bytes()))
            }
        }
    }

    fn answers(&self) {
        let provider = &self.provider;
        let deferred = provider.throttled.len() + provider.held.len();
        let count = provider.refused.len() + deferred + 1;
        let sent: Vec<(String, String)> = (57_000_101_u64..)
            .take(count)
            .map(|number| (self.started.send(&number.to_string(), "Hello"), format!("266{number}")))
            .collect();
        for ((transid, number), (_, body, error)) in sent.iter().zip(provider.refused) {
            let report = self.started.until(transid, "rejected");
            assert_eq!(report["error"], *error, "{body}");
            assert_eq!(self.requests(number).len(), 1, "{body}");
        }
        let later = &sent[provider.refused.len()..];
        for (transid, number) in later {
            self.started.until(transid, "submitted");
            assert_eq!(self.requests(number).len(), 2, "{number}");
        }
        let (retried, _) = later.last().unwrap();
        let timeline = self.started.report(retried)["timeline"].to_string();
        assert!(timeline.contains(&format!("\"{}\"", provider.retried.2)), "{timeline}");
        for (transid, _) in &later[..deferred] {
            let timeline = self.started.report(transid)["timeline"].to_string();
            assert!(!timeline.contains("refused"), "{timeline}");
        }
        until("the metric of throttled submits", || {
            let metrics = self.started.server.get_ops("/metrics").text();
            let name = "heliograph_carrier_throttled_total{carrier";
            let line = metrics.lines().find(|line| line.starts_with(name))?;
            line.ends_with(&format!(" {}", provider.throttled.len())).then_some(())
        });
    }

    fn receipts(&self) {
        let provider = &self.provider;
        let path = format!("/carriers/{}/{SECRET}", provider.name);
        for (number, (post, status, error)) in (57_000_201_u64..).zip(&provider.receipts) {
            let (transid, request) = self.accepted(&number.to_string(), "Hello");
            let target = match (provider.receipt_url)(&request) {
                Some(url) => url.strip_prefix(&self.base_url).unwrap().to_owned(),
                None => path.clone(),
            };
            assert!(target.starts_with(&path), "{target}");
            let answer = self.post(&target, post, &format!("id266{number}"));
            assert_eq!((answer.status, answer.text().as_str()), (200, ""), "{number}");
            let report = self.started.report(&transid);
            assert_eq!(report["status"], *status, "{number}: {report}");
            assert_eq!(report["error"].as_str(), *error, "{number}: {report}");
        }
        let log = self.started.server.log();
        assert!(!log.contains("unknown status"), "{log}");
        let target = path.replace(SECRET, &format!("inbound/{SECRET}"));
        let reference = self.started.keys.reference.to_string();
        let add = ["number", "add", "50000009", "--application", &reference];
        self.started.server.place.json(&add);
        let answer = self.post(&target, &provider.inbound, "m1");
        assert_eq!((answer.status, answer.text().as_str()), (200, ""));
        let path = format!("/sms/inbound/{}", self.started.key());
        let inbound = self.started.server.get(&path).json()["inbound"].clone();
        let fields = ["number", "recipient", "message"].map(|name| inbound[0][name].clone());
        assert_eq!(fields, [json!(&HANDSET[1..]), json!(OURS), json!("Yes & no")]);
    }

    fn finish(self) {
        self.answers();
        self.receipts();
        self.started.stop();
    }
}

#[test]
fn twilio() {
    let run = Run::start(Provider {
        name: "twilio",
        url: "https://api.twilio.com",
        accepted: (201, r#"{"sid":"$ID","status":"queued","error_code":null}"#),
        refused: &[
            (400, r#"{"code":21211,"message":"x","status":400}"#, "invalid_destination_21211"),
            (400, r#"{"code":21610,"message":"x","status":400}"#, "rejected_by_network_21610"),
            (400, r#"{"code":21602,"message":"x","status":400}"#, "refused_21602"),
        ],
        throttled: &[(429, r#"{"code":20429,"status":429}"#), (400, r#"{"code":21611}"#)],
        held: &[],
        retried: (404, r#"{"code":20404,"message":"x","status":404}"#, "refused_404"),
        receipts: vec![
            (Post::Form("MessageSid=$ID&MessageStatus=sent"), "submitted", None),
            (Post::Form("MessageSid=$ID&MessageStatus=delivered&To=x"), "delivered", None),
            (
                Post::Form("MessageSid=$ID&MessageStatus=undelivered&ErrorCode=30003"),
                "failed",
                Some("handset_unavailable_30003"),
            ),
            (
                Post::Form("MessageSid=$ID&MessageStatus=failed&ErrorCode=30008"),
                "failed",
                Some("undeliverable_30008"),
            ),
        ],
        inbound: Post::Form(
            "MessageSid=$ID&From=%2B26657000099&To=%2B26650000009&Body=Yes+%26+no&NumMedia=0",
        ),
        receipt_url: |request| pairs(&request.body).remove("StatusCallback"),
    });
    let (_, request) = run.accepted("57000001", "5€ & ж+");
    let path = "/2010-04-01/Accounts/AC00000000000000000000000000000000/Messages.json";
    assert_eq!(request.first_line(), format!("POST {path} HTTP/1.1"));
    // AC00000000000000000000000000000000:k&y
    let basic = "Basic QUMwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDprJnk=";
    assert_eq!(request.header("authorization"), Some(basic));
    let mut pairs = pairs(&request.body);
    pairs.remove("StatusCallback");
    let sender = pairs.remove("From").unwrap();
    assert!(!sender.is_empty());
    assert_eq!(json!(pairs), json!({ "To": "+26657000001", "Body": "5€ & ж+" }));
    run.finish();
}

#[test]
fn vonage() {
    let run = Run::start(Provider {
        name: "vonage",
        url: "https://rest.nexmo.com",
        accepted: (200, r#"{"message-count":"1","messages":[{"message-id":"$ID","status":"0"}]}"#),
        refused: &[
            (200, r#"{"messages":[{"status":"15","error-text":"x"}]}"#, "invalid_sender_15"),
            (200, r#"{"messages":[{"status":"3","error-text":"x"}]}"#, "refused_3"),
        ],
        throttled: &[(200, r#"{"messages":[{"status":"1"}]}"#), (429, "")],
        held: &[(200, r#"{"messages":[{"status":"9"}]}"#)],
        retried: (200, r#"{"messages":[{"status":"5"}]}"#, "refused_5"),
        receipts: vec![
            (Post::Get("?messageId=$ID&status=buffered&err-code=0"), "submitted", None),
            (Post::Get("?messageId=$ID&status=delivered&err-code=0"), "delivered", None),
            (
                Post::Json(json!({ "messageId": "$ID", "status": "failed", "err-code": "6" })),
                "failed",
                Some("rejected_by_network_6"),
            ),
            (
                Post::Form("messageId=$ID&status=unknown&err-code=1"),
                "failed",
                Some("unknown_to_carrier_1"),
            ),
            (
                Post::Get("?messageId=$ID&status=expired&err-code=99"),
                "expired",
                Some("validity_expired_99"),
            ),
        ],
        inbound: Post::Get(
            "?msisdn=26657000099&to=26650000009&text=Yes+%26+no&messageId=$ID&type=text",
        ),
        receipt_url: |request| pairs(&request.body).remove("callback"),
    });
    for (number, text, alphabet) in
        [("57000001", "5€ & more", "text"), ("57000002", "ж+", "unicode")]
    {
        let (_, request) = run.accepted(number, text);
        assert_eq!(request.first_line(), "POST /sms/json HTTP/1.1");
        let mut pairs = pairs(&request.body);
        assert!(!pairs.remove("from").unwrap().is_empty());
        let ttl: u64 = pairs.remove("ttl").unwrap().parse().unwrap();
        assert!((20_000..=604_800_000).contains(&ttl), "{ttl}");
        assert!(pairs.remove("callback").is_some());
        let wanted = json!({
            "api_key": "abcd1234", "api_secret": KEY, "to": format!("266{number}"),
            "text": text, "type": alphabet, "status-report-req": "1",
        });
        assert_eq!(json!(pairs), wanted);
    }
    run.finish();
}

#[test]
fn infobip() {
    let results = |status: Value, error: u16| {
        let other = json!({ "messageId": "other", "status": { "groupName": "DELIVERED" } });
        let one = json!({ "messageId": "$ID", "status": status, "error": { "id": error } });
        Post::Json(json!({ "results": [other, one] }))
    };
    let run = Run::start(Provider {
        name: "infobip",
        url: "https://xxxxx.api.infobip.com",
        accepted: (
            200,
            r#"{"bulkId":"b","messages":[{"messageId":"$ID","status":{"groupId":1,
            "groupName":"PENDING","id":26,"name":"PENDING_ACCEPTED"},"destination":"x"}]}"#,
        ),
        refused: &[
            (
                200,
                r#"{"messages":[{"messageId":"x","status":{"groupName":"REJECTED","id":14,
                "name":"REJECTED_DESTINATION"}}]}"#,
                "invalid_destination",
            ),
            (400, r#"{"errorCode":"E400","description":"x","violations":[]}"#, "refused_E400"),
        ],
        throttled: &[(429, "{}")],
        held: &[(
            200,
            r#"{"messages":[{"messageId":"x","status":{"groupName":"REJECTED",
            "name":"REJECTED_NOT_ENOUGH_CREDITS"}}]}"#,
        )],
        retried: (
            200,
            r#"{"messages":[{"messageId":"x","status":{"groupName":"REJECTED",
            "name":"REJECTED_SYSTEM_ERROR"}}]}"#,
            "refused",
        ),
        receipts: vec![
            (results(json!({ "groupName": "PENDING" }), 0), "submitted", None),
            (results(json!({ "groupId": 3, "groupName": "DELIVERED" }), 0), "delivered", None),
            (
                results(json!({ "groupName": "UNDELIVERABLE" }), 27),
                "failed",
                Some("handset_unavailable_27"),
            ),
            (results(json!({ "groupName": "REJECTED" }), 0), "failed", Some("rejected_by_network")),
            (results(json!({ "groupName": "EXPIRED" }), 0), "expired", Some("validity_expired")),
        ],
        inbound: Post::Json(json!({
            "results": [{ "messageId": "$ID", "from": "26657000099", "to": "26650000009",
                "text": "Yes & no", "cleanText": "no" }],
            "messageCount": 1,
        })),
        receipt_url: |request| {
            let url = &request.json()["messages"][0]["webhooks"]["delivery"]["url"];
            Some(url.as_str()?.to_owned())
        },
    });
    let (_, request) = run.accepted("57000001", "5€ & \"ж\"\n");
    assert_eq!(request.first_line(), "POST /sms/3/messages HTTP/1.1");
    assert_eq!(request.header("authorization"), Some("App k&y"));
    assert_eq!(request.header("content-type"), Some("application/json"));
    let body = request.json();
    let message = &body["messages"][0];
    let validity = &message["options"]["validityPeriod"];
    assert!((1..=172_800).contains(&validity["amount"].as_u64().unwrap()), "{body}");
    let wanted = json!({ "messages": [{
        "sender": message["sender"], "destinations": [{ "to": "26657000001" }],
        "content": { "text": "5€ & \"ж\"\n" },
        "options": { "validityPeriod": { "amount": validity["amount"], "timeUnit": "SECONDS" } },
        "webhooks": {
            "delivery": { "url": format!("{}/carriers/infobip/{SECRET}", run.base_url) },
            "contentType": "application/json",
        },
    }] });
    assert_eq!(body, wanted);
    run.finish();
}

#[test]
fn africastalking() {
    let run = Run::start(Provider {
        name: "africastalking",
        url: "https://api.sandbox.africastalking.com",
        accepted: (
            201,
            r#"{"SMSMessageData":{"Message":"Sent to 1/1 Total Cost: KES 0.8000","Recipients":[
            {"statusCode":101,"number":"x","status":"Success","cost":"x","messageId":"$ID"}]}}"#,
        ),
        refused: &[
            (
                201,
                r#"{"SMSMessageData":{"Message":"Sent to 0/1","Recipients":[
                {"statusCode":403,"status":"InvalidPhoneNumber","messageId":"None"}]}}"#,
                "invalid_destination_403",
            ),
            (
                201,
                r#"{"SMSMessageData":{"Message":"InvalidSenderId","Recipients":[]}}"#,
                "invalid_sender",
            ),
            (
                201,
                r#"{"SMSMessageData":{"Message":"x","Recipients":[{"statusCode":401}]}}"#,
                "refused_401",
            ),
        ],
        throttled: &[(429, "")],
        held: &[(201, r#"{"SMSMessageData":{"Message":"x","Recipients":[{"statusCode":405}]}}"#)],
        retried: (
            201,
            r#"{"SMSMessageData":{"Message":"x","Recipients":[{"statusCode":500}]}}"#,
            "refused_500",
        ),
        receipts: vec![
            (Post::Form("id=$ID&status=Buffered&phoneNumber=x"), "submitted", None),
            (Post::Form("id=$ID&status=Success&networkCode=63902"), "delivered", None),
            (
                Post::Form("id=$ID&status=Failed&failureReason=UserInBlackList"),
                "failed",
                Some("rejected_by_network"),
            ),
            (
                Post::Form("id=$ID&status=Failed&failureReason=DeliveryFailure"),
                "failed",
                Some("undeliverable"),
            ),
            (Post::Form("id=$ID&status=Rejected"), "failed", Some("rejected_by_network")),
            (Post::Form("id=$ID&status=Expired"), "expired", Some("validity_expired")),
        ],
        inbound: Post::Form(
            "id=$ID&from=%2B26657000099&to=26650000009&text=Yes+%26+no&date=2026-01-01+00:00:00",
        ),
        receipt_url: |_| None,
    });
    let (_, request) = run.accepted("57000001", "5€ & ж+");
    assert_eq!(request.first_line(), "POST /version1/messaging HTTP/1.1");
    assert_eq!(request.header("apikey"), Some(KEY));
    assert_eq!(request.header("accept"), Some("application/json"));
    let mut pairs = pairs(&request.body);
    assert!(!pairs.remove("from").unwrap().is_empty());
    let wanted = json!({ "username": "sandbox", "to": "+26657000001", "message": "5€ & ж+" });
    assert_eq!(json!(pairs), wanted);
    run.finish();
}

#[test]
fn clickatell() {
    let event = |code: u16, status: &str| {
        let update = json!([{ "channel": "sms", "messageId": "$ID", "statusCode": code,
            "status": status, "timestamp": 1 }]);
        let event = json!({ "messageStatusUpdate": update });
        Post::Json(json!({ "integrationId": "x", "integrationName": "x", "event": event }))
    };
    let run = Run::start(Provider {
        name: "clickatell",
        url: "https://platform.clickatell.com",
        accepted: (
            202,
            r#"{"messages":[{"apiMessageId":"$ID","accepted":true,"to":"x","error":null}],
            "error":null}"#,
        ),
        refused: &[
            (
                400,
                r#"{"messages":[{"apiMessageId":null,"accepted":false,"to":"x",
                "error":{"code":25,"description":"x"}}],"error":null}"#,
                "invalid_destination_25",
            ),
            (
                207,
                r#"{"messages":[{"accepted":false,"error":{"code":28}}],"error":null}"#,
                "refused_28",
            ),
        ],
        throttled: &[(400, r#"{"messages":[],"error":{"code":43,"description":"Rate limit"}}"#)],
        held: &[],
        retried: (402, r#"{"messages":[],"error":{"code":20}}"#, "refused_402"),
        receipts: vec![
            (event(4, "SENT_TO_SUPPLIER"), "submitted", None),
            (event(5, "DEVICE_ACK"), "delivered", None),
            (event(29, "RECIPIENT_DOES_NOT_EXIST"), "failed", Some("invalid_destination_29")),
            (event(23, "DELIVERY_FAILURE"), "failed", Some("undeliverable_23")),
            (event(20, "EXPIRED"), "expired", Some("validity_expired_20")),
        ],
        inbound: Post::Json(json!({ "integrationId": "x", "event": { "moText": [{
            "channel": "sms", "messageId": "$ID", "from": "26657000099", "to": "26650000009",
            "content": "Yes & no",
        }] } })),
        receipt_url: |_| None,
    });
    let (transid, request) = run.accepted("57000001", "5€ & \"ж\"");
    assert_eq!(request.first_line(), "POST /v1/message HTTP/1.1");
    assert_eq!(request.header("authorization"), Some(KEY));
    let body = request.json();
    let wanted = json!({ "messages": [{
        "channel": "sms", "to": "26657000001", "from": body["messages"][0]["from"],
        "content": "5€ & \"ж\"", "clientMessageId": transid,
    }] });
    assert_eq!(body, wanted);
    run.finish();
}

#[test]
fn kannel() {
    let run = Run::start(Provider {
        name: "kannel",
        url: "http://127.0.0.1:13013",
        accepted: (202, "0: Accepted for delivery"),
        refused: &[
            (403, "Not routable. Do not try again.", "no_route_403"),
            (400, "Empty receiver number not allowed, rejected", "refused_400"),
        ],
        throttled: &[(429, "")],
        held: &[],
        retried: (503, "Temporal failure, try again later.", "refused_503"),
        receipts: vec![
            (Post::Get("8"), "submitted", None),
            (Post::Get("1"), "delivered", None),
            (Post::Get("2"), "failed", Some("undeliverable")),
            (Post::Get("16"), "failed", Some("rejected_by_network")),
            (Post::Get("34"), "expired", Some("validity_expired")),
        ],
        inbound: Post::Get("?from=%2B26657000099&to=26650000009&text=Yes+%26+no&id=$ID"),
        // Kannel replaces %d by the kind of receipt.
        receipt_url: |request| {
            Some(query(request).remove("dlr-url")?.strip_suffix("%d")?.to_owned())
        },
    });
    for (number, text, alphabet) in [("57000001", "5€ & more", "0"), ("57000002", "ж+", "2")] {
        let (transid, request) = run.accepted(number, text);
        assert!(request.first_line().starts_with("GET /cgi-bin/sendsms?"));
        let mut query = query(&request);
        assert!(!query.remove("from").unwrap().is_empty());
        let receipt_url = format!("{}/carriers/kannel/{SECRET}", run.base_url);
        let wanted = json!({
            "username": "heliograph", "password": KEY, "to": format!("+266{number}"),
            "charset": "UTF-8", "coding": alphabet, "text": text, "dlr-mask": "19",
            "dlr-url": receipt_url + &format!("?id={transid}&status=%d"),
        });
        assert_eq!(json!(query), wanted);
    }
    run.finish();
}
