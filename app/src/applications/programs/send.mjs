// Node.js 20 or newer, without packages.
import { randomUUID } from 'node:crypto';

const sms = { number: 'NUMBER', message: 'Hello from Heliograph', requestid: 'order-4711' };
// One key for one message: a repeated call with it sends nothing a second time.
const headers = {
  Authorization: `Bearer ${process.env.HELIOGRAPH_KEY}`,
  'Idempotency-Key': randomUUID(),
};

async function send() {
  for (let attempt = 1; ; attempt += 1) {
    try {
      const body = new URLSearchParams(sms);
      const signal = AbortSignal.timeout(10_000);
      const answer = await fetch('BASE_URL/sms/send', { method: 'POST', headers, body, signal });
      if (answer.status < 500 || attempt === 3) return await answer.json();
    } catch (error) {
      if (attempt === 3) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, attempt * 1000));
  }
}

const answer = await send();
if (answer.code === 200) console.log(`Accepted as ${answer.transid} for ${answer.cost}.`);
else console.error(`Refused, ${answer.reason}: ${answer.text}`);
