//! Kannel, the SMS gateway that others are usually compared with, under the same load on its
//! `sendsms`.
//!
//! It queues in memory, because no store is configured, and submits each message to an SMSC. Here
//! the SMSC is a thread of this process that speaks Kannel's protocol for fake SMSCs and counts
//! messages. A run is over when every accepted message has arrived there. The `smpp` part uses a
//! sink behind SMPP instead.

use std::fs::File;
use std::io::Read as _;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::http;
use crate::requests::{DIGITS, Requests};
use crate::rounds::Contender;
use crate::usage::Work;

/// Why there is nothing to compare with.
pub const MISSING: &str = "Kannel isn't installed (.make/setup kannel)";
/// The folder of Debian's daemons, which isn't in every PATH.
const BESIDE_PATH: &str = "/usr/sbin";
/// The time in which Kannel must start, and in which all accepted messages must arrive.
const DEADLINE: Duration = Duration::from_mins(1);
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// The two processes of Kannel: bearerbox connects to the SMSC, smsbox serves HTTP.
pub struct Boxes {
    bearerbox: Child,
    smsbox: Child,
    address: String,
    _folder: TempDir,
}

impl Boxes {
    /// Starts Kannel with an SMSC, given as the lines of its group in the configuration. `None` if
    /// Kannel isn't installed.
    pub fn start(smsc: &str) -> Option<Self> {
        let (bearerbox, smsbox) = (find("bearerbox")?, find("smsbox")?);
        let folder = tempfile::tempdir().unwrap();
        let [admin, boxes, sendsms] = free_ports();
        let configuration = configuration(admin, boxes, sendsms, smsc);
        std::fs::write(folder.path().join("kannel.conf"), configuration).unwrap();
        let bearerbox = spawn(&bearerbox, folder.path());
        // smsbox exits if it can't connect to bearerbox.
        connect(boxes);
        let smsbox = spawn(&smsbox, folder.path());
        connect(sendsms);
        Some(Self { bearerbox, smsbox, address: format!("127.0.0.1:{sendsms}"), _folder: folder })
    }

    pub fn address(&self) -> &str {
        &self.address
    }

    pub fn processes(&self) -> Vec<u32> {
        vec![self.bearerbox.id(), self.smsbox.id()]
    }

    /// Sends messages until one is accepted for delivery instead of being queued, which means that
    /// the SMSC is connected. Returns how many messages it sent.
    pub fn wait_until_connected(&self) -> u64 {
        let started = Instant::now();
        for answered in 1.. {
            let answer = http::fetch(&self.address, &target("57000001"));
            if answer.contains("Accepted for delivery") {
                return answered;
            }
            assert!(started.elapsed() < DEADLINE, "{answer}");
            std::thread::sleep(LOOK_AGAIN);
        }
        unreachable!("the deadline ends the loop");
    }
}

impl Drop for Boxes {
    fn drop(&mut self) {
        for child in [&mut self.smsbox, &mut self.bearerbox] {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Kannel with the fake SMSC.
pub struct Kannel {
    boxes: Boxes,
    arrived: Arc<AtomicU64>,
    answered: u64,
}

impl Kannel {
    /// `None` if Kannel isn't installed.
    pub fn start() -> Option<Self> {
        let [smsc] = free_ports();
        let boxes = Boxes::start(&format!(
            "smsc = fake\nport = {smsc}\nour-host = 127.0.0.1\nconnect-allow-ip = 127.0.0.1\n"
        ))?;
        let arrived = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&arrived);
        let stream = connect(smsc);
        std::thread::spawn(move || count_lines(stream, &count));
        let answered = boxes.wait_until_connected();
        let mut kannel = Self { boxes, arrived, answered };
        kannel.settle(0);
        Some(kannel)
    }

    /// Returns Kannel for a comparison. A run is over when all accepted messages have arrived.
    pub fn contender(&mut self) -> Contender<'_> {
        Contender {
            addresses: vec![self.boxes.address().to_owned()],
            requests: sends(),
            processes: self.boxes.processes(),
            work: Box::new(Work::default),
            rest: Duration::ZERO,
            settle: Box::new(|answered| {
                self.settle(answered);
                None
            }),
        }
    }

    /// Waits until all accepted messages have arrived, including `answered` new ones since the last
    /// call.
    fn settle(&mut self, answered: u64) {
        self.answered += answered;
        let started = Instant::now();
        while self.arrived() < self.answered {
            assert!(
                started.elapsed() < DEADLINE,
                "Kannel accepted {} messages and submitted {}",
                self.answered,
                self.arrived()
            );
            std::thread::sleep(LOOK_AGAIN);
        }
    }

    pub fn arrived(&self) -> u64 {
        self.arrived.load(Ordering::Relaxed)
    }
}

/// Sends without delivery reports.
pub fn sends() -> Requests {
    Requests::of(http::get(&target(DIGITS)))
}

/// Sends with all kinds of delivery reports. For each report Kannel calls `url`, in which `%d`
/// becomes the kind of the report.
pub fn reported_sends(url: &str) -> Requests {
    let (target, url) = (target(DIGITS), url.replace('%', "%25"));
    Requests::of(http::get(&format!("{target}&dlr-mask=31&dlr-url={url}")))
}

fn target(number: &str) -> String {
    let text = http::query_text();
    format!("/cgi-bin/sendsms?username=bench&password=bench&from=12345&to={number}&text={text}")
}

fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain([PathBuf::from(BESIDE_PATH)])
        .map(|folder| folder.join(program))
        .find(|file| file.is_file())
}

/// Returns unused ports. All are bound at the same time, so that they differ.
pub fn free_ports<const N: usize>() -> [u16; N] {
    let listeners = [(); N].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    listeners.map(|listener| listener.local_addr().unwrap().port())
}

/// Only warnings are logged, which is to Kannel's advantage: otherwise it would log at least a line
/// per message.
fn configuration(admin: u16, boxes: u16, sendsms: u16, smsc: &str) -> String {
    format!(
        "group = core\nadmin-port = {admin}\nadmin-interface = 127.0.0.1\nadmin-password = bench\n\
         smsbox-port = {boxes}\nsmsbox-interface = 127.0.0.1\nbox-allow-ip = 127.0.0.1\n\
         dlr-storage = internal\nlog-file = bearerbox.log\nlog-level = 2\n\n\
         group = smsc\nsmsc-id = bench\n{smsc}\n\
         group = smsbox\nbearerbox-host = 127.0.0.1\nsendsms-port = {sendsms}\n\
         sendsms-interface = 127.0.0.1\nlog-file = smsbox.log\nlog-level = 2\n\n\
         group = sendsms-user\nusername = bench\npassword = bench\n\n\
         group = sms-service\nkeyword = default\ntext = none\n"
    )
}

fn spawn(program: &Path, folder: &Path) -> Child {
    let output = || Stdio::from(File::create(folder.join("output.txt")).unwrap());
    Command::new(program)
        .args(["-v", "4", "kannel.conf"])
        .current_dir(folder)
        .stdout(output())
        .stderr(output())
        .spawn()
        .unwrap()
}

/// Connects to a port as soon as a process listens on it.
fn connect(port: u16) -> TcpStream {
    let started = Instant::now();
    loop {
        match TcpStream::connect(("127.0.0.1", port)) {
            Ok(stream) => return stream,
            Err(error) => assert!(started.elapsed() < DEADLINE, "port {port}: {error}"),
        }
        std::thread::sleep(LOOK_AGAIN);
    }
}

/// The fake SMSC. Bearerbox writes a line per message.
fn count_lines(mut stream: TcpStream, arrived: &AtomicU64) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(read @ 1..) = stream.read(&mut buffer) {
        let lines = buffer[..read].split(|byte| *byte == b'\n').count() - 1;
        arrived.fetch_add(lines as u64, Ordering::Relaxed);
    }
}
