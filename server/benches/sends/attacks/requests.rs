//! Requests that search many rows, or that carry data which can't be stored.

use std::time::Duration;

use super::crowd::Crowd;
use super::{RUN, Strangers, compare};
use crate::http;
use crate::requests::Requests;
use crate::server::Server;
use crate::table::Table;

const ROWS: u64 = 20_000;
const SECRET: &str = "secret-of-the-benchmark";

/// A customer searches the messages of an application of their own.
pub fn reports(table: &mut Table) {
    let crowd = Crowd { connections: 8, every: Duration::ZERO };
    let server = Server::start().with_applications(2);
    let key = server.keys()[1].clone();
    // The oldest message is rejected and all others are delivered, so that a search for rejected
    // messages reads all of them.
    let rejected = format!("/sms/send/{key}?number=00000004&message=x");
    http::json(&http::fetch(server.address(), &rejected));
    super::uploads::upload_numbers(server.address(), &key, ROWS);
    server.wait_until_final();
    let ask = |strangers: &Strangers| {
        let path = strangers.choose("reports", "nothing");
        let request = http::get(&format!("/sms/{path}/{key}?status=rejected"));
        crowd.ask(strangers, Requests::of(request))
    };
    let what = "8 loops of /sms/reports?status= over 20,000";
    compare(what, server, RUN, ask, table);
}

/// A client that knows the secret of an HTTP carrier sends receipts.
pub fn receipts(table: &mut Table) {
    let crowd = Crowd { connections: 20, every: Duration::from_millis(100) };
    let settings = format!(
        "[[carrier]]\nname = \"sandbox\"\nkind = \"sandbox\"\n\n\
         [[route]]\ncarrier = \"sandbox\"\n\n\
         [[carrier]]\nname = \"upstream\"\nkind = \"http\"\nurl = \"http://127.0.0.1:9/\"\n\
         json = '{{\"to\": \"{{number}}\", \"text\": \"{{message}}\"}}'\n\n\
         [[carrier.answer]]\nhttp = 200\noutcome = \"accepted\"\nmessage_id = \"/id\"\n\n\
         [carrier.receipt]\nsecret = \"{SECRET}\"\nmessage_id = \"id\"\nstatus = \"status\"\n\
         delivered = \"DELIVRD\"\n"
    );
    let name = "x".repeat(3000);
    let ask = |strangers: &Strangers| {
        let carrier = strangers.choose("upstream", "nothing");
        let target = format!("/carriers/{carrier}/{SECRET}?id={name}&status=DELIVRD");
        crowd.ask(strangers, Requests::of(http::get(&target)))
    };
    let what = "200 receipts a second with names of 3 KB";
    compare(what, Server::start_set(&settings), RUN, ask, table);
}
