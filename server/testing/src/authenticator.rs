//! A software authenticator that creates and uses passkeys like a browser's.

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use webauthn_authenticator_rs::prelude::{Url, WebauthnAuthenticator as _};
use webauthn_authenticator_rs::softtoken::SoftToken;

/// An authenticator with its passkeys. It reports that it has verified its user, for example by PIN
/// or fingerprint.
pub struct Authenticator(SoftToken);

impl Default for Authenticator {
    fn default() -> Self {
        Self(SoftToken::new(true).unwrap().0)
    }
}

impl Authenticator {
    /// Returns a second authenticator with the same passkeys and counter.
    pub fn copy(&self) -> Self {
        Self(SoftToken::from_cbor(&self.0.to_cbor().unwrap()).unwrap())
    }

    /// Creates a passkey for a page of this origin. Returns the credential as JSON.
    pub fn make(&mut self, origin: &str, options: &str) -> String {
        let made = self.0.do_registration(url(origin), whole(options));
        serde_json::to_string(&made.unwrap()).unwrap()
    }

    /// Uses a passkey for a page of this origin. Returns the credential as JSON. Increments the
    /// passkey's counter.
    pub fn answer(&mut self, origin: &str, options: &str) -> String {
        let used = self.0.do_authentication(url(origin), whole(options));
        serde_json::to_string(&used.unwrap()).unwrap()
    }
}

fn url(origin: &str) -> Url {
    Url::parse(origin).unwrap()
}

/// Builds the argument that a page passes to `navigator.credentials`.
fn whole<T: DeserializeOwned>(options: &str) -> T {
    let options: Value = serde_json::from_str(options).unwrap();
    serde_json::from_value(json!({ "publicKey": options })).unwrap()
}
