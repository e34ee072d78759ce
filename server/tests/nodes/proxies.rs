//! The proxy configurations in `deploy/`, with two nodes. Whatever a stranger requests from the
//! portal, programs still get answers.

use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};

use testing::client::{Answer, Connection, bare, exchange, posted};
use testing::harness::{Running, until};

use crate::cluster::Cluster;

/// More than the limit of a form, and enough that a part is still unread when the form is refused.
const UNREAD_BYTES: usize = 300_000;

/// A proxy that runs with the shipped configuration on ports of its own.
struct Proxy {
    name: &'static str,
    address: String,
    _process: Running,
}

/// Returns a file of `deploy/` with some texts replaced. Panics if the file lacks one of them.
fn shipped(file: &str, replaced: &[(&str, &str)]) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy").join(file);
    let mut text = std::fs::read_to_string(path).unwrap();
    for (old, new) in replaced {
        assert!(text.contains(old), "{file} has no {old:?}");
        text = text.replace(old, new);
    }
    text
}

/// Returns an unused port.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

/// Starts nginx. On the port `in_clear` it refuses programs, as it does on port 80.
fn nginx(cluster: &Cluster, in_clear: u16) -> Proxy {
    let folder = cluster.place.path();
    let (port, at) = (free_port(), folder.display());
    let (one, two) = (cluster.nodes[0].address().unwrap(), cluster.nodes[1].address().unwrap());
    let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|kind| format!("{kind}_temp_path {at}/{kind};"))
        .join(" ");
    let text = shipped(
        "nginx.conf",
        &[
            ("user www-data;", ""),
            ("worker_processes auto;", "worker_processes 1;"),
            ("/run/nginx.pid", &format!("{at}/pid")),
            ("/var/log/nginx/", &format!("{at}/")),
            ("http {\n", &format!("http {{ {temporary}\n")),
            ("listen 80 default_server;", &format!("listen 127.0.0.1:{port};")),
            ("listen [::]:80 default_server;", &format!("listen 127.0.0.1:{in_clear};")),
            ("http:80 1;", &format!("http:{in_clear} 1;")),
            ("node-1:3000", &one),
            ("node-2:3000", &two),
        ],
    );
    start("nginx", port, folder, &text, |file| {
        let mut command = Command::new("nginx");
        command
            .args(["-p", &at.to_string(), "-g", "daemon off; master_process off;", "-c"])
            .arg(file);
        command
    })
}

fn haproxy(cluster: &Cluster) -> Proxy {
    let (port, folder) = (free_port(), cluster.place.path());
    let [one, two] = [0, 1].map(|n: usize| {
        let node = &cluster.nodes[n];
        let ops = node.ops_address().unwrap();
        let ops_port = ops.rsplit_once(':').unwrap().1.to_owned();
        (node.address().unwrap(), ops_port)
    });
    let text = shipped(
        "haproxy.cfg",
        &[
            ("user haproxy", ""),
            ("group haproxy", ""),
            ("/run/haproxy/admin.sock", &format!("{}/admin", folder.display())),
            ("bind :80,:::80 v6only", &format!("bind 127.0.0.1:{port}")),
            ("check port 3002", "check"),
            (
                "node-1:3000\n    server node-2 node-2:3000\n\n",
                &format!(
                    "{} port {}\n    server node-2 {} port {}\n\n",
                    one.0, one.1, two.0, two.1
                ),
            ),
            ("node-1:3000", &one.0),
            ("node-2:3000", &two.0),
        ],
    );
    start("haproxy", port, folder, &text, |file| {
        let mut command = Command::new("haproxy");
        command.arg("-db").arg("-f").arg(file);
        command
    })
}

/// Starts a proxy and waits until it answers.
fn start(
    name: &'static str,
    port: u16,
    folder: &Path,
    text: &str,
    command: impl FnOnce(&Path) -> Command,
) -> Proxy {
    let file = folder.join(name);
    std::fs::write(&file, text).unwrap();
    let log = std::fs::File::create(folder.join(format!("{name}.log"))).unwrap();
    let process = command(&file)
        .stdout(Stdio::from(log.try_clone().unwrap()))
        .stderr(Stdio::from(log))
        .spawn()
        .unwrap_or_else(|error| panic!("{name}: {error}; `.make/setup proxies` installs it"));
    let proxy = Proxy { name, address: format!("127.0.0.1:{port}"), _process: Running(process) };
    until("a proxy that answers", || {
        TcpStream::connect(&proxy.address).ok()?;
        (proxy.status(&bare("GET", "/login", &[])) == Some(200)).then_some(())
    });
    proxy
}

impl Proxy {
    /// Sends the worst requests for a route: a long query, a query that needs escaping wherever it
    /// is repeated, large cookies and headers, and a body that isn't read.
    fn abuse(&self, method: &str, path: &str) {
        let query = "-_.".repeat(2_000);
        let cookie = format!("a={}", "b".repeat(20_000));
        let page = format!("http://localhost{path}?x={query}");
        let headers = [
            ("Cookie", cookie.as_str()),
            ("Referer", &page),
            ("Accept", "text/html"),
            ("Content-Length", "0"),
        ];
        let target = format!("{path}?x={query}&next={path}?{query}");
        self.ask(&bare(method, &target, &headers));
        self.ask(&bare("POST", &target, &headers));
        let length = UNREAD_BYTES.to_string();
        let mut unread = bare(
            "POST",
            path,
            &[("Content-Type", "application/x-www-form-urlencoded"), ("Content-Length", &length)],
        );
        unread.resize(unread.len() + UNREAD_BYTES, b'a');
        self.ask(&unread);
    }

    /// Sends a request. Any answer is fine, or none.
    fn ask(&self, request: &[u8]) {
        self.status(request);
    }

    fn status(&self, request: &[u8]) -> Option<u16> {
        Connection::open(&self.address).try_status(request)
    }

    fn get(&self, target: &str) -> Answer {
        exchange(&self.address, &bare("GET", target, &[]))
    }

    /// Makes as many calls as there are nodes.
    fn answers_programs(&self, key: &str, after: &str) {
        for _ in 0..2 {
            let answer = self.get(&format!("/sms/balance/{key}"));
            let (name, text) = (self.name, answer.text());
            assert_eq!(answer.status, 200, "{name} after {after}: {text}");
        }
    }
}

#[test]
fn no_request_of_a_stranger_takes_the_api_down() {
    let cluster = Cluster::new(2, "");
    cluster.start_all();
    let keys = cluster.holding();
    let in_clear = free_port();
    let routes = heliograph::portal_routes();
    for proxy in [nginx(&cluster, in_clear), haproxy(&cluster)] {
        for (method, path) in &routes {
            proxy.abuse(method, path);
            proxy.answers_programs(keys.live.expose(), &format!("{method} {path}"));
        }
        for path in ["/carriers/acme/wrong", "/no/such/page", "/%2e%2e//sms"] {
            proxy.abuse("GET", path);
            proxy.answers_programs(keys.live.expose(), path);
        }
    }
    cluster.stop();
}

#[test]
fn a_node_that_is_gone_costs_no_message_twice_and_no_answer() {
    let cluster = Cluster::new(2, "");
    cluster.start_all();
    let keys = cluster.holding();
    let key = keys.live.expose();
    let in_clear = free_port();
    let proxies = [nginx(&cluster, in_clear), haproxy(&cluster)];

    // The unencrypted port closes the connections of programs, but still serves people.
    let mut clear = Connection::open(&format!("127.0.0.1:{in_clear}"));
    assert_eq!(clear.try_status(&bare("GET", "/login", &[])), Some(200));
    for target in ["/sms", &format!("/sms/balance/{key}"), "/carriers/acme/x"] {
        let mut clear = Connection::open(&format!("127.0.0.1:{in_clear}"));
        assert_eq!(clear.try_status(&bare("GET", target, &[])), None, "{target}");
    }

    cluster.nodes[0].kill();
    let mut accepted = 0;
    for proxy in &proxies {
        for n in 0..10 {
            let query = format!("number=%2B50258001{n:03}&message=Hello");
            let got = proxy.get(&format!("/sms/send/{key}?{query}"));
            assert_eq!(got.status, 200, "{}: {}", proxy.name, got.text());
            let form = "application/x-www-form-urlencoded";
            let request = posted(&format!("/sms/send/{key}"), form, query.as_bytes());
            let got = exchange(&proxy.address, &request);
            assert_eq!(got.status, 200, "{}: {}", proxy.name, got.text());
            accepted += 2;
        }
    }
    cluster.nodes[1].kill();
    for proxy in &proxies {
        for method in ["GET", "POST"] {
            let request = bare(method, &format!("/sms/balance/{key}"), &[("Content-Length", "0")]);
            let answer = exchange(&proxy.address, &request);
            assert_eq!(answer.status, 503, "{} {method}", proxy.name);
            assert_eq!(answer.reason(), "unavailable");
            assert_eq!(answer.header("retry-after"), Some("1"));
        }
    }
    for node in &cluster.nodes {
        node.start(&cluster.place, &[]);
    }
    assert_eq!(cluster.reports(&keys).len(), accepted);
    cluster.stop();
}
