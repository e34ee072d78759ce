//! Somebody who takes messages by HTTP and submits them to a sink of its own.

use std::time::Duration;

use super::calls::Calls;
use super::sink::Sink;
use super::{Run, WINDOW, until};
use crate::kannel::{self, Boxes};
use crate::machine;
use crate::server::Server;

pub struct Side {
    program: Program,
    pub sink: Sink,
}

enum Program {
    Heliograph(Server),
    Kannel(Boxes, Calls),
}

impl Side {
    pub fn heliograph() -> Self {
        let sink = Sink::opened();
        let settings = format!(
            "[[carrier]]\nname = \"sink\"\nkind = \"smpp\"\naddress = \"127.0.0.1:{}\"\n\
             system_id = \"bench\"\npassword = \"bench\"\nbind = \"transceiver\"\nwindow = {WINDOW}\n\n\
             [[route]]\ncarrier = \"sink\"\n",
            sink.port()
        );
        let server = Server::start_with(&settings);
        let program = Program::Heliograph(server);
        Self { program, sink }
    }

    /// `None` when it isn't installed.
    pub fn kannel() -> Option<Self> {
        let sink = Sink::opened();
        let boxes = Boxes::start(&format!(
            "smsc = smpp\nhost = 127.0.0.1\nport = {}\nsmsc-username = bench\nsmsc-password = bench\n\
             system-type = \"\"\ntransceiver-mode = true\nmax-pending-submits = {WINDOW}\nreconnect-delay = 1\n",
            sink.port()
        ))?;
        let taken = boxes.wait_until_connected();
        until("Kannel's first message", || sink.submits() == taken);
        let program = Program::Kannel(boxes, Calls::start());
        Some(Self { program, sink })
    }

    pub fn name(&self) -> &'static str {
        match self.program {
            Program::Heliograph(_) => "heliograph",
            Program::Kannel(..) => "Kannel",
        }
    }

    pub fn address(&self) -> &str {
        match &self.program {
            Program::Heliograph(server) => server.address(),
            Program::Kannel(boxes, _) => boxes.address(),
        }
    }

    pub fn request(&self) -> Vec<u8> {
        match &self.program {
            Program::Heliograph(server) => server.send_request(),
            Program::Kannel(..) => kannel::send_request(),
        }
    }

    /// A send whose delivery is to be known.
    pub fn reported_request(&self) -> Vec<u8> {
        match &self.program {
            Program::Heliograph(server) => server.send_request(),
            Program::Kannel(_, calls) => kannel::reported_request(&calls.url()),
        }
    }

    /// How many messages it knows, or has said, to be delivered.
    pub fn delivered(&self) -> u64 {
        match &self.program {
            Program::Heliograph(server) => server.delivered(),
            Program::Kannel(_, calls) => calls.delivered(),
        }
    }

    /// Waits until what was done is stored.
    pub fn settle(&self) {
        if let Program::Heliograph(server) = &self.program {
            server.wait_until_sent();
        }
    }

    /// Looks through what is stored.
    pub fn check(&self) {
        if let Program::Heliograph(server) = &self.program {
            server.check();
        }
    }

    /// What a run gave, begun when its processes had used so much processor time.
    pub fn run(&self, messages: u64, took: Duration, p99: Option<Duration>, cpu: Duration) -> Run {
        let messages = u32::try_from(messages).unwrap();
        Run {
            per_second: f64::from(messages) / took.as_secs_f64(),
            p99,
            cpu: self.cpu().saturating_sub(cpu) / messages,
        }
    }

    /// Processor time of its processes so far.
    pub fn cpu(&self) -> Duration {
        self.processes().into_iter().map(machine::cpu).sum()
    }

    pub fn signal(&self, name: &str) {
        for id in self.processes() {
            machine::signal(id, name);
        }
    }

    fn processes(&self) -> Vec<u32> {
        match &self.program {
            Program::Heliograph(server) => vec![server.id()],
            Program::Kannel(boxes, _) => boxes.processes(),
        }
    }
}
