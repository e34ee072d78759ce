//! A system that accepts messages over HTTP and submits them to a sink of its own.

use std::time::Duration;

use super::calls::Calls;
use super::sink::Sink;
use super::until;
use crate::kannel::{self, Boxes};
use crate::load::{Answers, Load};
use crate::requests::Requests;
use crate::server::Server;
use crate::usage::{Usage, Work};
use crate::{machine, stored};

pub struct Side {
    program: Program,
    pub sink: Sink,
    sends: Requests,
    /// Sends that request delivery reports.
    reported: Requests,
}

enum Program {
    Heliograph(Server),
    Kannel(Boxes, Calls),
}

impl Side {
    pub fn heliograph(window: usize) -> Self {
        let sink = Sink::opened();
        let settings = format!(
            "[[carrier]]\nname = \"sink\"\nkind = \"smpp\"\naddress = \"127.0.0.1:{}\"\n\
             system_id = \"bench\"\npassword = \"bench\"\nbind = \"transceiver\"\nwindow = {window}\n\n\
             [[route]]\ncarrier = \"sink\"\n",
            sink.port()
        );
        let server = Server::start_set(&settings);
        Self {
            sink,
            sends: server.sends(1),
            // Heliograph always requests receipts.
            reported: server.sends(1),
            program: Program::Heliograph(server),
        }
    }

    /// `None` if Kannel isn't installed.
    pub fn kannel(window: usize) -> Option<Self> {
        let sink = Sink::opened();
        let boxes = Boxes::start(&format!(
            "smsc = smpp\nhost = 127.0.0.1\nport = {}\nsmsc-username = bench\n\
             smsc-password = bench\nsystem-type = \"\"\ntransceiver-mode = true\n\
             max-pending-submits = {window}\nreconnect-delay = 1\n",
            sink.port()
        ))?;
        let taken = boxes.wait_until_connected();
        until("Kannel's first message", || sink.submits() == taken);
        let calls = Calls::start();
        Some(Self {
            sink,
            sends: kannel::sends(),
            reported: kannel::reported_sends(&calls.url()),
            program: Program::Kannel(boxes, calls),
        })
    }

    fn address(&self) -> &str {
        match &self.program {
            Program::Heliograph(server) => server.address(),
            Program::Kannel(boxes, _) => boxes.address(),
        }
    }

    /// Sends over this many connections for this long.
    pub fn send(&mut self, connections: usize, duration: Duration) -> Answers {
        let addresses = [self.address().to_owned()];
        let load = Load { addresses: &addresses, requests: &mut self.sends, connections, duration };
        load.run()
    }

    /// Like [`Side::send`], with delivery reports.
    pub fn send_reported(&mut self, connections: usize, duration: Duration) -> Answers {
        std::mem::swap(&mut self.sends, &mut self.reported);
        let answers = self.send(connections, duration);
        std::mem::swap(&mut self.sends, &mut self.reported);
        answers
    }

    /// Returns how many messages are stored, or were reported, as delivered.
    pub fn delivered(&self) -> u64 {
        match &self.program {
            Program::Heliograph(server) => stored::delivered(&server.database_url()),
            Program::Kannel(_, calls) => calls.delivered(),
        }
    }

    /// Waits until all results are stored.
    pub fn settle(&self) {
        if let Program::Heliograph(server) = &self.program {
            server.wait_until_sent();
        }
    }

    /// Checks the invariants of the stored data.
    pub fn check(&self) {
        if let Program::Heliograph(server) = &self.program {
            server.check();
        }
    }

    /// Returns the CPU time and other counts of its processes so far.
    pub fn usage(&self) -> Usage {
        let work = match &self.program {
            Program::Heliograph(server) => server.work(),
            Program::Kannel(..) => Work::default(),
        };
        Usage::now(&self.processes(), work)
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
