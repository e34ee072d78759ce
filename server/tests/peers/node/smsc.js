// An SMSC built on the `smpp` package's server, for the tests of carriers.
//
//   node smsc.js [text|hex-to-decimal]     the format of message IDs in answers and receipts
//
// It listens on any free port. It prints the port and all events as JSON lines. The last digit of
// the destination decides: 2 is undeliverable, 3 expires, 4 is refused at once, all others are
// delivered. Each line of its standard input is a message from a handset, as JSON. The process ends
// when its standard input is closed.
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const smpp = createRequire(import.meta.url)("smpp");

const SYSTEM_ID = "heliograph";
const PASSWORD = "secret";
const STATES = { 2: "UNDELIV", 3: "EXPIRED" };
const REFUSED = "4";

const ids = process.argv[2] ?? "text";
let count = 0;
/** The number of messages from handsets. */
let references = 0;
/** Sessions that can receive receipts. */
const receivers = new Set();
/** Receipts that wait for a receiving session. */
const due = [];

function print(event, fields) {
  process.stdout.write(`${JSON.stringify({ event, ...fields })}\n`);
}

/** Returns the next message ID as in the answer and as in the receipt. */
function nextIds() {
  count += 1;
  if (ids === "hex-to-decimal") {
    const id = 0x1a2b3c00 + count;
    return { answered: id.toString(16).toUpperCase(), receipted: id.toString() };
  }
  const id = `n-${count}`;
  return { answered: id, receipted: id };
}

/** Returns the position of this part in its message, or null if there is only one part. */
function segment(pdu, udh) {
  if (pdu.sar_total_segments !== undefined) {
    const [reference, total, number] = [pdu.sar_msg_ref_num, pdu.sar_total_segments, pdu.sar_segment_seqnum];
    return { by: "sar", reference, total, number };
  }
  for (const element of udh ?? []) {
    if (element[0] === 0) {
      return { by: "udh", reference: element[2], total: element[3], number: element[4] };
    }
    if (element[0] === 8) {
      return { by: "udh", reference: element.readUInt16BE(2), total: element[4], number: element[5] };
    }
  }
  return null;
}

function submitted(session, pdu) {
  const payload = pdu.message_payload !== undefined;
  const { message, udh } = payload ? pdu.message_payload : pdu.short_message;
  const refused = pdu.destination_addr.endsWith(REFUSED);
  print("submit", {
    source: address(pdu, "source_addr", "source_addr"),
    destination: address(pdu, "dest_addr", "destination_addr"),
    data_coding: pdu.data_coding,
    registered_delivery: pdu.registered_delivery,
    text: message,
    payload,
    segment: segment(pdu, udh),
    refused,
  });
  if (refused) {
    session.send(pdu.response({ command_status: smpp.ESME_RINVDSTADR }));
    return;
  }
  const { answered, receipted } = nextIds();
  session.send(pdu.response({ message_id: answered }), () => {
    due.push({ session, pdu, id: receipted });
    sendReceipts();
  });
}

function address(pdu, kind, digits) {
  return { ton: pdu[`${kind}_ton`], npi: pdu[`${kind}_npi`], digits: pdu[digits] };
}

/** Sends receipts on the submitting session if it can receive, otherwise on any that can. */
function sendReceipts() {
  while (due.length > 0 && receivers.size > 0) {
    const { session, pdu, id } = due.shift();
    const receiver = receivers.has(session) ? session : receivers.values().next().value;
    const state = STATES[pdu.destination_addr.at(-1)] ?? "DELIVRD";
    const [delivered, error] = state === "DELIVRD" ? ["001", "000"] : ["000", "011"];
    const now = new Date().toISOString().replaceAll(/[-T:]/g, "").slice(2, 12);
    const text =
      `id:${id} sub:001 dlvrd:${delivered} submit date:${now} done date:${now} ` +
      `stat:${state} err:${error} text:`;
    const receipt = {
      source_addr_ton: pdu.dest_addr_ton,
      source_addr_npi: pdu.dest_addr_npi,
      source_addr: pdu.destination_addr,
      dest_addr_ton: pdu.source_addr_ton,
      dest_addr_npi: pdu.source_addr_npi,
      destination_addr: pdu.source_addr,
      esm_class: smpp.ESM_CLASS.MC_DELIVERY_RECEIPT,
      data_coding: 0,
      short_message: text,
    };
    receiver.deliver_sm(receipt, (answer) => {
      print("receipt", { id, state, answer: answer.command_status });
    });
  }
}

function bound(session, pdu, receives) {
  if (pdu.system_id !== SYSTEM_ID || pdu.password !== PASSWORD) {
    print("refused_bind", { system_id: pdu.system_id });
    session.send(pdu.response({ command_status: smpp.ESME_RINVPASWD }), () => session.close());
    return;
  }
  session.send(pdu.response({ system_id: "node" }), () => {
    print("bound", { mode: pdu.command });
    if (receives) {
      receivers.add(session);
      sendReceipts();
    }
  });
}

/** Delivers a message from a handset, in parts if it is long. */
function deliver({ source, destination, text }) {
  const session = receivers.values().next().value;
  const ucs2 = [...text].some((character) => character > "\x7e");
  const size = ucs2 ? 66 : 150;
  const parts = [];
  for (let at = 0; at < text.length || at === 0; at += size) {
    parts.push(text.slice(at, at + size));
  }
  references += 1;
  parts.forEach((part, index) => {
    const udh = Buffer.from([5, 0, 3, references, parts.length, index + 1]);
    const pdu = {
      source_addr: source,
      destination_addr: destination,
      esm_class: parts.length > 1 ? smpp.ESM_CLASS.UDH_INDICATOR : 0,
      data_coding: ucs2 ? 8 : 0,
      short_message: parts.length > 1 ? { udh, message: part } : part,
    };
    session.deliver_sm(pdu, (answer) => {
      print("delivered", { answer: answer.command_status });
    });
  });
}

const server = smpp.createServer((session) => {
  session.on("bind_transceiver", (pdu) => bound(session, pdu, true));
  session.on("bind_receiver", (pdu) => bound(session, pdu, true));
  session.on("bind_transmitter", (pdu) => bound(session, pdu, false));
  session.on("submit_sm", (pdu) => submitted(session, pdu));
  session.on("enquire_link", (pdu) => session.send(pdu.response()));
  session.on("unbind", (pdu) => {
    receivers.delete(session);
    print("unbound", {});
    session.send(pdu.response(), () => session.close());
  });
  session.on("close", () => receivers.delete(session));
  session.on("error", (error) => print("error", { what: String(error) }));
});
server.listen(0, "127.0.0.1", () => print("listening", { port: server.address().port }));
process.stdin.on("end", () => process.exit());
createInterface({ input: process.stdin }).on("line", (line) => deliver(JSON.parse(line)));
