//! The portal's pages, requested like a signed-in customer's browser does and rendered by the
//! server.

use std::time::Duration;

use crate::http;
use crate::requests::Requests;
use crate::rounds::repeat;
use crate::server::Server;
use crate::table::{Figure, Table, Target};

const RUN: Duration = Duration::from_secs(1);
/// Connections that request pages.
const CONNECTIONS: usize = 8;

/// Measures the pages of a customer with many messages.
pub fn measure(table: &mut Table) {
    println!("pages, signed in, {CONNECTIONS} connections, runs of {RUN:?}");
    let server = Server::start();
    let mut sends = server.sends(1);
    repeat(server.address(), &mut sends, CONNECTIONS, RUN);
    server.wait_until_sent();
    let application = format!("/applications/{}", server.reference());
    let pages = [("/applications", 2000.0), (&application, 2000.0), ("/reports", 1500.0)];
    let cookie = sign_in(&server);
    for (path, least) in pages {
        let mut requests = page(path, &cookie);
        let measured = repeat(server.address(), &mut requests, CONNECTIONS, RUN).median();
        let name = path.replace(&server.reference(), "REF");
        let rate = Figure::PerSecond(measured.per_second);
        table.add(format!("portal: {name}"), rate, Target::AtLeast(least));
        let p50 = Figure::millis(measured.p50);
        table.add(format!("portal: {name}, p50"), p50, Target::AtMost(5.0));
    }
}

/// Returns requests for a page, with this cookie.
pub fn page(path: &str, cookie: &str) -> Requests {
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: bench\r\nAccept: text/html\r\nCookie: {cookie}\r\n\r\n"
    );
    Requests::of(request.into_bytes())
}

/// Signs in the demo's customer and returns the cookie.
pub fn sign_in(server: &Server) -> String {
    give_password(server, "customer")
}

/// Submits the password of one of the demo's users and returns the cookie. The user is then signed
/// in, unless they have a second factor.
pub fn give_password(server: &Server, person: &str) -> String {
    let email = server.said(&format!("/{person}/email")).replace('@', "%40");
    let password = server.said(&format!("/{person}/password"));
    let form = format!("email={email}&password={password}&next=");
    let request = http::form("/fn/sign-in", http::PAGE, &form);
    cookie(&http::exchange(server.address(), &request))
}

/// Returns the cookie that a response sets.
pub fn cookie(answer: &str) -> String {
    let cookie = answer
        .lines()
        .find_map(|line| line.strip_prefix("set-cookie: "))
        .and_then(|cookie| cookie.split(';').next());
    assert!(cookie.is_some(), "{answer}");
    cookie.unwrap_or_default().to_owned()
}
