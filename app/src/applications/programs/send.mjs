// Needs Node.js 20 or newer, and no packages.
import { randomUUID } from 'node:crypto';

const sms = { number: 'NUMBER', message: 'Hello from Heliograph', requestid: 'order-4711' };
// Use one Idempotency-Key per message. A repeated call with the same one sends nothing twice.
const headers = {
  Authorization: `Bearer ${process.env.HELIOGRAPH_KEY}`,
  'Idempotency-Key': randomUUID(),
};

async function send() {
  for (let attempt = 1; ; attempt += 1) {
    let pause = attempt;
    try {
      const body = new URLSearchParams(sms);
      const signal = AbortSignal.timeout(10_000);
      const answer = await fetch('BASE_URL/sms/send', { method: 'POST', headers, body, signal });
      const busy = answer.status === 429 || answer.status >= 500;
      // With a 429 or 503, this header says in how many seconds to try again.
      pause = Number(answer.headers.get('Retry-After') ?? attempt);
      if (!busy || attempt === 3 || pause > 60) return await answer.json();
    } catch (error) {
      if (attempt === 3) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, pause * 1000));
  }
}

const answer = await send();
if (answer.code === 200) console.log(`Accepted as ${answer.transid} for ${answer.cost}.`);
else console.error(`Refused, ${answer.reason}: ${answer.text}`);
