//! A scripted SMSC for tests. It exchanges raw frames over real sockets, so that it can misbehave.

use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

pub const GENERIC_NACK: u32 = 0x8000_0000;
pub const BIND_RECEIVER: u32 = 0x01;
pub const BIND_TRANSMITTER: u32 = 0x02;
pub const SUBMIT_SM: u32 = 0x04;
pub const SUBMIT_SM_RESP: u32 = 0x8000_0004;
pub const DELIVER_SM: u32 = 0x05;
pub const DELIVER_SM_RESP: u32 = 0x8000_0005;
pub const UNBIND: u32 = 0x06;
pub const UNBIND_RESP: u32 = 0x8000_0006;
pub const BIND_TRANSCEIVER: u32 = 0x09;
pub const OUTBIND: u32 = 0x0B;
pub const ENQUIRE_LINK: u32 = 0x15;
pub const ENQUIRE_LINK_RESP: u32 = 0x8000_0015;
pub const DATA_SM: u32 = 0x0103;
pub const DATA_SM_RESP: u32 = 0x8000_0103;
/// The bit that is set in the command ID of every response.
pub const RESPONSE: u32 = 0x8000_0000;

/// A listening SMSC.
pub struct Smsc {
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
}

/// A PDU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pdu {
    pub command: u32,
    pub status: u32,
    pub sequence: u32,
    pub body: Vec<u8>,
}

/// A connected ESME.
pub struct Peer {
    stream: Box<dyn Stream>,
}

pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

impl Smsc {
    /// Listens on a free local port.
    pub async fn start() -> Self {
        Self::start_at("127.0.0.1:0").await
    }

    /// Listens on this address.
    pub async fn start_at(address: &str) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        Self { listener, tls: None }
    }

    /// Like [`Smsc::start`], but with TLS and its own certificate for `localhost`. Also returns the
    /// certificate as PEM.
    pub async fn start_tls() -> (Self, String) {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let smsc = Self::with_tls(vec![made.cert.der().clone()], &made.signing_key, None).await;
        (smsc, made.cert.pem())
    }

    /// Like [`Smsc::start_tls`], but an authority has signed the certificate. Returns the
    /// authority's certificate.
    pub async fn start_tls_signed(name: &str) -> (Self, String) {
        let (authority_key, key) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
        let mut authority = CertificateParams::default();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = authority.self_signed(&authority_key).unwrap();
        let issuer = Issuer::new(authority, authority_key);
        let leaf = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let leaf = leaf.signed_by(&key, &issuer).unwrap();
        let smsc = Self::with_tls(vec![leaf.der().clone()], &key, None).await;
        (smsc, certificate.pem())
    }

    /// Like [`Smsc::start_tls`], with a certificate like that of `openssl req -x509`: it claims to
    /// be an authority, and has a common name only.
    pub async fn start_tls_openssl() -> (Self, String) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "smsc");
        let certificate = params.self_signed(&key).unwrap();
        let smsc = Self::with_tls(vec![certificate.der().clone()], &key, None).await;
        (smsc, certificate.pem())
    }

    /// Like [`Smsc::start_tls`], but accepts only ESMEs that present this certificate.
    pub async fn start_tls_for(client: &str) -> (Self, String) {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let chain = vec![made.cert.der().clone()];
        let smsc = Self::with_tls(chain, &made.signing_key, Some(client)).await;
        (smsc, made.cert.pem())
    }

    async fn with_tls(
        chain: Vec<CertificateDer<'static>>,
        key: &KeyPair,
        client: Option<&str>,
    ) -> Self {
        let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
        let provider = Arc::new(ring::default_provider());
        let config = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .unwrap();
        let config = match client {
            None => config.with_no_client_auth(),
            Some(pem) => {
                let mut roots = RootCertStore::empty();
                roots.add(CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()).unwrap();
                let verifier =
                    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
                config.with_client_cert_verifier(verifier.build().unwrap())
            }
        };
        let config = config.with_single_cert(chain, key).unwrap();
        let mut smsc = Self::start().await;
        smsc.tls = Some(TlsAcceptor::from(Arc::new(config)));
        smsc
    }

    pub fn address(&self) -> String {
        self.listener.local_addr().unwrap().to_string()
    }

    /// Accepts the next connection and reads nothing from it. Skips connections that fail the TLS
    /// handshake.
    pub async fn accept(&self) -> Peer {
        loop {
            let (socket, _) = self.listener.accept().await.unwrap();
            socket.set_nodelay(true).unwrap();
            if let Some(stream) = self.wrap(socket).await {
                return Peer { stream };
            }
        }
    }

    async fn wrap(&self, socket: TcpStream) -> Option<Box<dyn Stream>> {
        match &self.tls {
            Some(tls) => match tls.accept(socket).await {
                Ok(stream) => Some(Box::new(stream)),
                Err(_) => None,
            },
            None => Some(Box::new(socket)),
        }
    }

    /// Accepts the next connection and its bind.
    pub async fn bound(&self) -> Peer {
        let mut peer = self.accept().await;
        let bind = peer.expect_bind().await;
        peer.answer(&bind, 0, b"smsc\0").await;
        peer
    }
}

impl Peer {
    /// Reads the next PDU. `None` if the ESME closed the connection.
    pub async fn read(&mut self) -> Option<Pdu> {
        let mut length = [0; 4];
        self.stream.read_exact(&mut length).await.ok()?;
        let length = usize::try_from(u32::from_be_bytes(length)).unwrap();
        assert!((16..=65536).contains(&length), "length {length}");
        let mut rest = vec![0; length - 4];
        self.stream.read_exact(&mut rest).await.ok()?;
        let word = |at: usize| u32::from_be_bytes(rest[at..at + 4].try_into().unwrap());
        Some(Pdu {
            command: word(0),
            status: word(4),
            sequence: word(8),
            body: rest[12..].to_vec(),
        })
    }

    /// Reads the next PDU, which must be this command.
    pub async fn expect(&mut self, command: u32) -> Pdu {
        let pdu = self.read().await.expect("the ESME closed");
        assert_eq!(pdu.command, command, "{pdu:X?}");
        pdu
    }

    /// Reads the next PDU, which must be a bind.
    pub async fn expect_bind(&mut self) -> Pdu {
        let pdu = self.read().await.expect("the ESME closed");
        assert!(
            matches!(pdu.command, BIND_RECEIVER | BIND_TRANSMITTER | BIND_TRANSCEIVER),
            "{pdu:X?}"
        );
        pdu
    }

    /// Reads the next `count` submits.
    pub async fn submits(&mut self, count: usize) -> Vec<Pdu> {
        let mut submits = Vec::new();
        while submits.len() < count {
            submits.push(self.expect(SUBMIT_SM).await);
        }
        submits
    }

    /// Reads up to `most` bytes. Empty if the ESME closed or cut the connection.
    pub async fn read_some(&mut self, most: usize) -> Vec<u8> {
        let mut bytes = vec![0; most];
        let count = self.stream.read(&mut bytes).await.unwrap_or(0);
        bytes.truncate(count);
        bytes
    }

    /// Reads exactly `count` bytes.
    pub async fn read_exact(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        self.stream.read_exact(&mut bytes).await.unwrap();
        bytes
    }

    /// Waits until the ESME closes the connection, and discards what it still sends.
    pub async fn closed(&mut self) {
        while !self.read_some(65536).await.is_empty() {}
    }

    pub async fn write(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.unwrap();
        self.stream.flush().await.unwrap();
    }

    /// Writes although the ESME may be gone.
    pub async fn try_write(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes).await;
        let _ = self.stream.flush().await;
    }

    /// Sends the response to `request`.
    pub async fn answer(&mut self, request: &Pdu, status: u32, body: &[u8]) {
        let answer = pdu(request.command | RESPONSE, status, request.sequence, body);
        self.write(&answer).await;
    }

    /// Accepts a submit with the message ID `id`.
    pub async fn accept(&mut self, submit: &Pdu, id: &str) {
        self.answer(submit, 0, &c_string(id)).await;
    }

    /// Accepts all submits with the IDs 1, 2, 3 and so on, until the ESME unbinds or closes the
    /// connection. Returns their number. Like a fast SMSC, sends all pending responses in one
    /// write.
    pub async fn serve(&mut self) -> usize {
        let (mut incoming, mut answers, mut count) = (Vec::new(), Vec::new(), 0);
        loop {
            let bytes = self.read_some(256 * 1024).await;
            if bytes.is_empty() {
                return count;
            }
            incoming.extend_from_slice(&bytes);
            let (mut at, mut leaves) = (0, false);
            while let Some((request, length)) = split(&incoming[at..]) {
                at += length;
                let body = if request.command == SUBMIT_SM {
                    count += 1;
                    c_string(&count.to_string())
                } else {
                    Vec::new()
                };
                leaves |= request.command == UNBIND;
                if request.command & RESPONSE == 0 {
                    let command = request.command | RESPONSE;
                    answers.extend(pdu(command, 0, request.sequence, &body));
                }
            }
            incoming.drain(..at);
            self.try_write(&answers).await;
            answers.clear();
            if leaves {
                return count;
            }
        }
    }
}

/// Returns the certificate and the key of an ESME, as PEM.
pub fn client_certificate() -> (String, String) {
    let made = rcgen::generate_simple_self_signed(vec!["esme".to_owned()]).unwrap();
    (made.cert.pem(), made.signing_key.serialize_pem())
}

/// Returns the first complete PDU in `bytes`, and its length.
pub fn split(bytes: &[u8]) -> Option<(Pdu, usize)> {
    let word = |at: usize| {
        let word = bytes.get(at..at + 4)?;
        Some(u32::from_be_bytes(word.try_into().unwrap()))
    };
    let length = usize::try_from(word(0)?).unwrap();
    let pdu = Pdu {
        command: word(4)?,
        status: word(8)?,
        sequence: word(12)?,
        body: bytes.get(16..length)?.to_vec(),
    };
    Some((pdu, length))
}

/// Encodes a PDU.
pub fn pdu(command: u32, status: u32, sequence: u32, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(16 + body.len()).unwrap();
    let header = [length, command, status, sequence];
    let mut bytes: Vec<u8> = header.iter().flat_map(|word| word.to_be_bytes()).collect();
    bytes.extend_from_slice(body);
    bytes
}

/// Encodes a C-octet string.
pub fn c_string(text: &str) -> Vec<u8> {
    [text.as_bytes(), &[0]].concat()
}

/// Encodes a TLV.
pub fn tlv(tag: u16, value: &[u8]) -> Vec<u8> {
    let length = u16::try_from(value.len()).unwrap();
    [&tag.to_be_bytes()[..], &length.to_be_bytes(), value].concat()
}

/// Encodes the body of a deliver_sm.
pub fn deliver(esm_class: u8, data_coding: u8, text: &[u8], tlvs: &[u8]) -> Vec<u8> {
    let mut body = vec![0, 1, 1];
    body.extend(c_string("4912345"));
    body.extend([0, 0]);
    body.extend(c_string("6789"));
    body.extend([esm_class, 0, 0, 0, 0, 0, 0, data_coding, 0]);
    body.push(u8::try_from(text.len()).unwrap());
    body.extend_from_slice(text);
    body.extend_from_slice(tlvs);
    body
}

/// Encodes the body of a deliver_sm with a receipt as in SMPP 3.4, Appendix B.
pub fn receipt(id: &str, stat: &str) -> Vec<u8> {
    let text = format!(
        "id:{id} sub:001 dlvrd:001 submit date:2611211200 done date:2611211201 stat:{stat} \
         err:000 text:"
    );
    deliver(4, 0, text.as_bytes(), &[])
}

/// Returns the short_message of a submit_sm.
pub fn short_message(body: &[u8]) -> Vec<u8> {
    let mut at = 0;
    let text = |at: usize| at + body[at..].iter().position(|byte| *byte == 0).unwrap() + 1;
    at = text(at) + 2; // service_type, source ton, npi
    at = text(at) + 2; // source, destination ton, npi
    at = text(at) + 3; // destination, esm_class, protocol_id, priority_flag
    at = text(text(at)) + 4; // times, registered_delivery .. sm_default_msg_id
    let length = usize::from(body[at]);
    body[at + 1..at + 1 + length].to_vec()
}
