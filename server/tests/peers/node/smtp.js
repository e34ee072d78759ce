// A mail server for the tests. It prints its port and each mail as JSON lines. The recipient's name
// decides what it does:
//   later…   refuses temporarily, the first time
//   never…   refuses permanently
//   hang…    never answers
//   cut…     closes the connection in the middle of the mail, the first time
import { SMTPServer } from "smtp-server";

const tell = (event) => process.stdout.write(`${JSON.stringify(event)}\n`);
const seen = new Map();

/** Returns how often this was called for an address, including this call. */
function times(address) {
  seen.set(address, (seen.get(address) ?? 0) + 1);
  return seen.get(address);
}

const refuse = (code, message) => Object.assign(new Error(message), { responseCode: code });

const server = new SMTPServer({
  authOptional: true,
  disabledCommands: ["STARTTLS", "AUTH"],
  logger: false,
  onRcptTo({ address }, _session, answer) {
    const count = times(address);
    tell({ event: "recipient", address, count });
    if (address.startsWith("later") && count === 1) return answer(refuse(451, "try later"));
    if (address.startsWith("never")) return answer(refuse(550, "no such user"));
    if (address.startsWith("hang")) return;
    answer();
  },
  onData(stream, session, answer) {
    const recipients = session.envelope.rcptTo.map(({ address }) => address);
    const cut = recipients.some((to) => to.startsWith("cut") && seen.get(to) === 1);
    const chunks = [];
    stream.on("data", (chunk) => {
      chunks.push(chunk);
      if (cut) {
        for (const connection of server.connections) {
          if (connection.id === session.id) connection._socket.destroy();
        }
      }
    });
    stream.on("end", () => {
      if (cut) return;
      tell({ event: "mail", recipients, source: Buffer.concat(chunks).toString() });
      answer(null, "taken");
    });
  },
});
server.on("error", () => {});
server.listen(0, "127.0.0.1", () => {
  tell({ event: "listening", port: server.server.address().port });
});
process.stdin.resume();
process.stdin.on("end", () => process.exit());
