// Needs Node.js 20 or newer, and no packages.
import { createHmac, timingSafeEqual } from 'node:crypto';
import { createServer } from 'node:http';

const secret = process.env.HELIOGRAPH_WEBHOOK_SECRET;
if (!secret?.startsWith('whsec_')) throw new Error('Set HELIOGRAPH_WEBHOOK_SECRET.');
const key = Buffer.from(secret.slice('whsec_'.length), 'base64');

// An event can arrive more than once. Keep the IDs in your database: these are lost at a restart.
const received = new Set();

/** Returns whether Heliograph signed this request within the last 5 minutes. */
function isGenuine(headers, body) {
  const { 'webhook-id': id, 'webhook-timestamp': timestamp } = headers;
  const hmac = createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body);
  const expected = Buffer.from(`v1,${hmac.digest('base64')}`);
  // During a change of the secret, there are several signatures, separated by spaces.
  const isSigned = (headers['webhook-signature'] ?? '').split(' ').some((text) => {
    const signature = Buffer.from(text);
    return signature.length === expected.length && timingSafeEqual(signature, expected);
  });
  return isSigned && Math.abs(Date.now() / 1000 - Number(timestamp)) <= 300;
}

const server = createServer((request, response) => {
  const chunks = [];
  request.on('data', (chunk) => chunks.push(chunk));
  request.on('end', () => {
    // The signature covers these bytes exactly, so verify them before you parse them.
    const body = Buffer.concat(chunks);
    if (!isGenuine(request.headers, body)) {
      response.writeHead(401).end();
      return;
    }
    const { id, type, data } = JSON.parse(body);
    if (!received.has(id)) {
      console.log(id, type, JSON.stringify(data));
      received.add(id);
    }
    response.writeHead(204).end();
  });
});
server.listen(process.env.PORT ?? 8000, '127.0.0.1');
