// Calls the API with openapi-fetch and the types from openapi-typescript:
// node openapi_typescript.js URL KEY LIVE_KEY. Prints a line for each call: its operation, and a value from
// the answer.
import createClient from 'openapi-fetch';
import type { paths } from './sms_client';

const [url = '', key = '', live = ''] = process.argv.slice(2);
const plain = createClient<paths, 'application/json'>({ baseUrl: url });
const headers = { Authorization: `Bearer ${key}` };
const signed = createClient<paths, 'application/json'>({ baseUrl: url, headers });
const path = { key };
const sms = { number: '00000001', message: 'Hi' };
const many = { numbers: '00000001\n+00000002', message: 'Hi' };
const rows = { bulksms: '00000001,Hi\n00000001,Hi, you' };
const form = { 'Content-Type': 'application/x-www-form-urlencoded' };

function print(operation: string, word: string | null | undefined): void {
  console.log(operation, word);
}

/** Returns a multipart/form-data body. */
function parts(body: Record<string, string>): FormData {
  const data = new FormData();
  for (const [name, value] of Object.entries(body)) data.append(name, value);
  return data;
}

async function run(): Promise<void> {
  const sent = await plain.GET('/sms/send/{key}', { params: { path, query: sms } });
  const transid = sent.data?.transid ?? '';
  print('send', transid);
  const header = { 'Idempotency-Key': 'k' };
  const signedSend = await signed.GET('/sms/send', { params: { query: sms, header } });
  print('sendWithHeader', signedSend.data?.transid);
  for (const body of [sms, undefined]) {
    const query = body ? {} : sms;
    const posted = await plain.POST('/sms/send/{key}', { params: { path, query }, body });
    print('sendPost', posted.data?.transid);
  }
  const formSend = await plain.POST('/sms/send/{key}', {
    params: { path },
    body: sms,
    headers: form,
  });
  print('sendPost', formSend.data?.transid);
  const signedPost = await signed.POST('/sms/send', { body: sms });
  print('sendPostWithHeader', signedPost.data?.transid);

  const bulk = await plain.POST('/sms/bulk/{key}', {
    params: { path },
    body: rows,
    headers: form,
  });
  print('bulk', bulk.data?.batchid);
  const uploaded = await signed.POST('/sms/bulk', { body: many, bodySerializer: () => parts(many) });
  const batchid = uploaded.data?.batchid ?? '';
  print('bulkWithHeader', batchid);

  const report = await plain.GET('/sms/reports/{key}/{transid}', {
    params: { path: { key, transid } },
  });
  print('report', report.data?.report.transid);
  const signedReport = await signed.GET('/sms/reports/{transid}', { params: { path: { transid } } });
  print('reportWithHeader', signedReport.data?.report.transid);
  const query = { transid, from: '2026-01-01' };
  const reports = await plain.GET('/sms/reports/{key}', { params: { path, query } });
  print('reports', reports.data?.reports[0]?.transid);
  const signedReports = await signed.GET('/sms/reports');
  print('reportsWithHeader', signedReports.data?.reports[0]?.transid);
  const batch = await plain.GET('/sms/batches/{key}/{batchid}', {
    params: { path: { key, batchid } },
  });
  print('batch', batch.data?.batch.batchid);
  const signedBatch = await signed.GET('/sms/batches/{batchid}', { params: { path: { batchid } } });
  print('batchWithHeader', signedBatch.data?.batch.batchid);
  const batches = await plain.GET('/sms/batches/{key}', { params: { path } });
  print('batches', batches.data?.batches[0]?.batchid);
  const signedBatches = await signed.GET('/sms/batches', { params: { query: { limit: 1 } } });
  print('batchesWithHeader', signedBatches.data?.batches[0]?.batchid);
  const inbound = await plain.GET('/sms/inbound/{key}', { params: { path } });
  const sendat = new Date(Date.now() + 3_600_000).toISOString();
  const scheduled = await plain.POST('/sms/bulk/{key}', {
    params: { path },
    body: { ...rows, sendat },
    headers: form,
  });
  const waiting = scheduled.data?.batchid ?? '';
  const paused = await plain.POST('/sms/batches/{key}/{batchid}', {
    params: { path: { key, batchid: waiting } },
    body: { pause: '1' },
  });
  print('changeBatch', paused.data?.batch.batchid);
  const resumed = await signed.POST('/sms/batches/{batchid}', {
    params: { path: { batchid: waiting } },
    body: { resume: '1' },
  });
  print('changeBatchWithHeader', resumed.data?.batch.batchid);
  const waits = { ...sms, sendat, validity: '60' };
  const later = await plain.GET('/sms/send/{key}', { params: { path, query: waits } });
  const transidToCancel = later.data?.transid ?? '';
  const cancelled = await plain.POST('/sms/cancel/{key}', {
    params: { path, query: { transid: transidToCancel } },
  });
  print('cancel', String(cancelled.data?.cancelled));
  const signedCancelled = await signed.POST('/sms/cancel', { body: { batchid: waiting } });
  print('cancelWithHeader', String(signedCancelled.data?.cancelled));
  print('inbound', inbound.data?.inbound.length.toString());
  const signedInbound = await signed.GET('/sms/inbound', { params: { query: { limit: 1 } } });
  print('inboundWithHeader', signedInbound.data?.inbound.length.toString());
  print('events', (await plain.GET('/sms/events/{key}', { params: { path } })).data?.next);
  const types = { query: { type: 'batch.done' } };
  print('eventsWithHeader', (await signed.GET('/sms/events', { params: types })).data?.next);
  const hook = { url: 'https://example.com/a' };
  const made = await plain.POST('/sms/webhooks/{key}', { params: { path, query: hook } });
  print('createWebhook', made.data?.webhook.webhookid);
  const signedMade = await signed.POST('/sms/webhooks', { body: hook });
  const webhookid = signedMade.data?.webhook.webhookid ?? '';
  print('createWebhookWithHeader', webhookid);
  const hooks = await plain.GET('/sms/webhooks/{key}', { params: { path } });
  print('webhooks', hooks.data?.webhooks[0]?.webhookid);
  const signedHooks = await signed.GET('/sms/webhooks');
  print('webhooksWithHeader', signedHooks.data?.webhooks[0]?.webhookid);
  const both = { path: { key, webhookid } };
  const found = await plain.GET('/sms/webhooks/{key}/{webhookid}', { params: both });
  print('webhook', found.data?.webhook.webhookid);
  const one = { path: { webhookid } };
  const signedFound = await signed.GET('/sms/webhooks/{webhookid}', { params: one });
  print('webhookWithHeader', signedFound.data?.webhook.webhookid);
  const rotated = await plain.POST('/sms/webhooks/{key}/{webhookid}', {
    params: both,
    body: { rotate: '1' },
  });
  print('changeWebhook', rotated.data?.webhook.webhookid);
  const removed = await signed.POST('/sms/webhooks/{webhookid}', {
    params: one,
    body: { remove: '1' },
  });
  print('changeWebhookWithHeader', removed.data?.webhook.webhookid);
  const optOut = { number: '71234568' };
  const added = await plain.POST('/sms/optouts/{key}', {
    params: { path },
    body: optOut,
    headers: form,
  });
  print('changeOptouts', String(added.data?.added));
  const optOuts = await plain.GET('/sms/optouts/{key}', { params: { path } });
  print('optouts', optOuts.data?.optouts[0]?.number);
  const signedOptOuts = await signed.GET('/sms/optouts', { params: { query: optOut } });
  print('optoutsWithHeader', signedOptOuts.data?.optouts[0]?.number);
  const remove = { ...optOut, remove: '1' as const };
  const removal = await signed.POST('/sms/optouts', { body: remove, headers: form });
  print('changeOptoutsWithHeader', String(removal.data?.removed));
  const arrival = { number: '57000001', recipient: '50000009', message: 'Hi' };
  const arrived = await plain.POST('/sms/test/inbound/{key}', {
    params: { path },
    body: arrival,
    headers: form,
  });
  print('testInbound', arrived.data?.inbound.message);
  const other = await signed.POST('/sms/test/inbound', { body: arrival, headers: form });
  print('testInboundWithHeader', other.data?.inbound.message);
  const advance = { advance: '60' };
  const moved = await plain.POST('/sms/test/clock/{key}', {
    params: { path },
    body: advance,
    headers: form,
  });
  print('testClock', String(moved.data?.offset));
  const back = { reset: '1' as const };
  const wasMoved = await signed.POST('/sms/test/clock', { body: back, headers: form });
  print('testClockWithHeader', String(wasMoved.data?.offset));
  const begun = await plain.POST('/sms/verify/start/{key}', {
    params: { path },
    body: { number: '57000011' },
    headers: form,
  });
  print('verifyStart', begun.data?.verifyid);
  const checked = await plain.POST('/sms/verify/check/{key}', {
    params: { path },
    body: { verifyid: begun.data?.verifyid ?? '', otp: '987654' },
    headers: form,
  });
  print('verifyCheck', String(checked.data?.tries_left));
  const second = { number: '57000012' };
  const begun2 = await signed.POST('/sms/verify/start', { body: second, headers: form });
  print('verifyStartWithHeader', begun2.data?.verifyid);
  const typed = { verifyid: begun2.data?.verifyid ?? '', otp: '987654' };
  const last = await signed.POST('/sms/verify/check', { body: typed, headers: form });
  print('verifyCheckWithHeader', String(last.data?.tries_left));
  const livePath = { path: { key: live } };
  const liveHeaders = { Authorization: `Bearer ${live}` };
  const body = { per_recipient_day: '7', prefixes: '' };
  const limited = await plain.POST('/sms/limits/{key}', { params: livePath, body });
  print('changeLimits', String(limited.data?.limits.per_recipient_day));
  const signedLimited = await plain.POST('/sms/limits', { body, headers: liveHeaders });
  print('changeLimitsWithHeader', String(signedLimited.data?.limits.per_recipient_day));
  const limits = await plain.GET('/sms/limits/{key}', { params: livePath });
  print('limits', String(limits.data?.limits.per_recipient_day));
  const signedLimits = await plain.GET('/sms/limits', { headers: liveHeaders });
  print('limitsWithHeader', String(signedLimits.data?.limits.per_recipient_day));
  print('balance', (await plain.GET('/sms/balance/{key}', { params: { path } })).data?.currency);
  print('balanceWithHeader', (await signed.GET('/sms/balance')).data?.currency);
  const prices = await plain.GET('/sms/prices/{key}', { params: { path } });
  print('prices', prices.data?.prices[0]?.currency);
  const number = { query: { number: '26657000001' } };
  const signedPrices = await signed.GET('/sms/prices', { params: number });
  print('pricesWithHeader', signedPrices.data?.price?.rule);
  print('openapi', ((await plain.GET('/openapi.json')).data as { openapi: string }).openapi);
  const wrong = { path: { key: '0wrong' } };
  const refused = await plain.GET('/sms/balance/{key}', { params: wrong });
  print('refused', refused.error?.reason);
}

void run();
