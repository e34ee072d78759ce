//! A server with a test's carriers, and an Active, funded application.

use domain::LostAnswer;
use serde_json::Value;
use testing::harness::{Keys, Place, TestServer, until};

pub struct Started {
    pub server: TestServer,
    pub keys: Keys,
}

impl Started {
    /// Starts a server with this settings file, in which `{reference}` stands for the application's
    /// reference.
    pub fn start(settings: &str) -> Self {
        let place = Place::new();
        let keys = place.funded("a@example.org", "100");
        Self::start_with(place, keys, settings)
    }

    pub fn start_with(place: Place, keys: Keys, settings: &str) -> Self {
        write(&place, &keys, settings);
        let server = TestServer::start(place, &[], &[]);
        Self { server, keys }
    }

    pub fn key(&self) -> &str {
        self.keys.live.expose()
    }

    /// Sends a message that must be accepted, and returns its transaction ID.
    pub fn send(&self, number: &str, text: &str) -> String {
        let pairs = [("number", number), ("message", text)];
        let answer = self.server.send(self.key(), &pairs);
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()["transid"].as_str().unwrap().to_owned()
    }

    /// Sends to each number of a range and returns the transaction IDs.
    pub fn send_to(&self, numbers: std::ops::Range<u32>) -> Vec<String> {
        numbers.map(|number| self.send(&number.to_string(), "Hello")).collect()
    }

    pub fn report(&self, transid: &str) -> Value {
        self.server.report(self.key(), transid)
    }

    /// Waits until a message has a status and returns its report.
    pub fn until(&self, transid: &str, status: &str) -> Value {
        until(&format!("{transid} to be {status}"), || {
            let report = self.report(transid);
            (report["status"] == status).then_some(report)
        })
    }

    pub fn until_all(&self, transids: &[String], status: &str) {
        for transid in transids {
            self.until(transid, status);
        }
    }

    /// Returns the first connection of a carrier, once it is listed.
    pub fn connection(&self, carrier: &str) -> Value {
        until("a connection", || {
            let carriers = self.server.place.json(&["carrier", "list"]);
            let mut carriers = carriers.as_array().unwrap().iter();
            let found = carriers.find(|found| found["name"] == carrier)?;
            Some(found["connections"][0].clone()).filter(Value::is_object)
        })
    }

    pub fn balance(&self) -> String {
        self.server.balance(self.key())
    }

    /// Sets that the application's messages are sent again if the carrier's answer is lost.
    pub fn resend_lost(&self) {
        let Keys { account_id, reference, .. } = self.keys;
        self.server.place.with_service(async |service| {
            let policy = LostAnswer::Resend;
            let applications = service.applications();
            let set = applications.set_lost_answer(account_id, reference, policy);
            set.await.unwrap();
        });
    }

    /// Replaces the settings file of the running server.
    pub fn write(&self, settings: &str) {
        write(&self.server.place, &self.keys, settings);
    }

    /// Returns a carrier as staff see it.
    pub fn carrier(&self, name: &str) -> Value {
        let carriers = self.server.place.json(&["carrier", "list"]);
        let found = carriers.as_array().unwrap().iter().find(|found| found["name"] == name);
        found.cloned().unwrap_or_default()
    }

    /// Waits until staff see that a carrier is up.
    pub fn until_up(&self, carrier: &str) {
        until("the carrier to be up", || (self.carrier(carrier)["state"] == "up").then_some(()));
    }

    /// Stops the server and starts it with these settings.
    pub fn restarted(self, settings: &str) -> Self {
        let (code, place) = self.server.stop();
        assert_eq!(code, Some(0));
        Self::start_with(place, self.keys, settings)
    }

    /// Kills the server, like a power cut, and starts it with these settings.
    pub fn killed(self, settings: &str) -> Self {
        let place = self.server.kill();
        Self::start_with(place, self.keys, settings)
    }

    /// Stops the server and checks that every invariant holds, before and after the stop.
    pub fn stop(self) -> Place {
        self.server.place.check();
        let (code, place) = self.server.stop();
        assert_eq!(code, Some(0));
        place.check();
        place
    }
}

/// Writes the settings file to where every command of the binary finds it.
fn write(place: &Place, keys: &Keys, settings: &str) {
    let settings = settings.replace("{reference}", &keys.reference.to_string());
    std::fs::write(place.path().join("heliograph.toml"), settings).unwrap();
}
