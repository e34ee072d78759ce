//! Kannel, the SMS gateway that most others are measured by: the same load on its `sendsms`.
//!
//! It queues in memory (no store is configured) and hands each message to a fake SMSC, which is a thread of
//! this process that counts. A run is over when all that was answered has arrived there.

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
use crate::rounds::Contender;

const TARGET: &str =
    "/cgi-bin/sendsms?username=bench&password=bench&from=12345&to=57000001&text=Hello%20there";
/// Where Debian's package puts programs that are not in every PATH.
const BESIDE_PATH: &str = "/usr/sbin";
/// By when it must be up, and by when all that it answered must have arrived.
const DEADLINE: Duration = Duration::from_mins(1);
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// Bearerbox, which talks to the SMSC, and smsbox, which talks HTTP.
pub struct Kannel {
    bearerbox: Child,
    smsbox: Child,
    address: String,
    arrived: Arc<AtomicU64>,
    answered: u64,
    _folder: TempDir,
}

impl Kannel {
    /// `None` when it isn't installed.
    pub fn start() -> Option<Self> {
        let (bearerbox, smsbox) = (find("bearerbox")?, find("smsbox")?);
        let folder = tempfile::tempdir().unwrap();
        let [admin, boxes, smsc, sendsms] = free_ports();
        let configuration = configuration(admin, boxes, smsc, sendsms);
        std::fs::write(folder.path().join("kannel.conf"), configuration).unwrap();
        let bearerbox = spawn(&bearerbox, folder.path());
        // The other box gives up when it can't connect.
        connect(boxes);
        let smsbox = spawn(&smsbox, folder.path());
        connect(sendsms);
        let arrived = Arc::new(AtomicU64::new(0));
        let kannel = Self {
            bearerbox,
            smsbox,
            address: format!("127.0.0.1:{sendsms}"),
            arrived: Arc::clone(&arrived),
            answered: 0,
            _folder: folder,
        };
        let stream = connect(smsc);
        std::thread::spawn(move || count_lines(stream, &arrived));
        Some(kannel.ready())
    }

    /// Sends one until it is taken rather than kept for later: the SMSC is known to it then.
    fn ready(mut self) -> Self {
        let started = Instant::now();
        loop {
            self.answered += 1;
            let answer = http::fetch(&self.address, TARGET);
            if answer.contains("Accepted for delivery") {
                break;
            }
            assert!(started.elapsed() < DEADLINE, "{answer}");
            std::thread::sleep(LOOK_AGAIN);
        }
        self.settle(0);
        self
    }

    /// In turns with others; its turn is over when all it answered has arrived.
    pub fn contender(&mut self) -> Contender<'_> {
        Contender {
            address: self.address.clone(),
            request: http::get(TARGET),
            processes: vec![self.bearerbox.id(), self.smsbox.id()],
            settle: Box::new(|answered| self.settle(answered)),
        }
    }

    /// Waits until all that was answered, so many of them since the last call, has arrived.
    fn settle(&mut self, answered: u64) {
        self.answered += answered;
        let started = Instant::now();
        while self.arrived() < self.answered {
            assert!(
                started.elapsed() < DEADLINE,
                "Kannel answered {} and handed over {}",
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

impl Drop for Kannel {
    fn drop(&mut self) {
        for child in [&mut self.smsbox, &mut self.bearerbox] {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain([PathBuf::from(BESIDE_PATH)])
        .map(|folder| folder.join(program))
        .find(|file| file.is_file())
}

/// Ports that nobody listens on now; held together, so that they differ.
fn free_ports() -> [u16; 4] {
    let listeners = [(); 4].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    listeners.map(|listener| listener.local_addr().unwrap().port())
}

/// Warnings alone are logged, which is to its advantage: it would log a line or more per message.
fn configuration(admin: u16, boxes: u16, smsc: u16, sendsms: u16) -> String {
    format!(
        "group = core\nadmin-port = {admin}\nadmin-interface = 127.0.0.1\nadmin-password = bench\n\
         smsbox-port = {boxes}\nsmsbox-interface = 127.0.0.1\nbox-allow-ip = 127.0.0.1\n\
         log-file = bearerbox.log\nlog-level = 2\n\n\
         group = smsc\nsmsc = fake\nsmsc-id = bench\nport = {smsc}\nour-host = 127.0.0.1\n\
         connect-allow-ip = 127.0.0.1\n\n\
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

/// Connects as soon as somebody listens.
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

/// The fake SMSC: bearerbox writes a line per message.
fn count_lines(mut stream: TcpStream, arrived: &AtomicU64) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(read @ 1..) = stream.read(&mut buffer) {
        let lines = buffer[..read].split(|byte| *byte == b'\n').count() - 1;
        arrived.fetch_add(lines as u64, Ordering::Relaxed);
    }
}
