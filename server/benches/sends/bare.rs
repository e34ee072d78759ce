//! axum without Heliograph: one handler that answers with JSON of the same size.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use axum::extract::Query;
use axum::routing::get;
use axum::{Json, Router};
use serde::{Deserialize, Serialize};

use crate::http;
use crate::requests::{DIGITS, Requests};
use crate::rounds::Contender;
use crate::usage::Work;

/// The argument with which this executable runs as the bare handler.
pub const ARGUMENT: &str = "serve-bare-handler";

#[derive(Deserialize)]
struct Parameters {
    number: String,
    message: String,
}

#[derive(Serialize)]
struct Answer {
    code: u16,
    message: &'static str,
    text: &'static str,
    balance: f64,
    transid: String,
    pages: usize,
    cost: f64,
    currency: &'static str,
    warnings: [&'static str; 0],
}

async fn handle(Query(parameters): Query<Parameters>) -> Json<Answer> {
    Json(Answer {
        code: 200,
        message: "SUCCESS",
        text: "SUCCESS",
        balance: 9.95,
        transid: format!("m_05{}", parameters.number),
        pages: parameters.message.len().div_ceil(160),
        cost: 0.05,
        currency: "USD",
        warnings: [],
    })
}

/// Prints its address and serves until it is killed.
pub fn serve() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let router = Router::new().route("/sms/send/{key}", get(handle));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        println!("{}", listener.local_addr().unwrap());
        axum::serve(listener, router).await.unwrap();
    });
}

/// The bare handler in a process of its own.
pub struct Bare {
    child: Child,
    address: String,
}

impl Bare {
    pub fn start() -> Self {
        let this = std::env::current_exe().unwrap();
        let mut child = Command::new(this).arg(ARGUMENT).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { child, address: line.trim().to_owned() }
    }

    pub fn contender(&self) -> Contender<'_> {
        Contender {
            addresses: vec![self.address.clone()],
            requests: requests(),
            processes: vec![self.child.id()],
            work: Box::new(Work::default),
            rest: Duration::ZERO,
            settle: Box::new(|_| None),
        }
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn requests() -> Requests {
    let key = "123456hk_000000000000000000000000000000000000";
    let text = http::query_text();
    let request = http::get(&format!("/sms/send/{key}?number={DIGITS}&message={text}"));
    Requests::of(request)
}
