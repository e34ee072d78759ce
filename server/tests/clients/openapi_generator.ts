// Calls the API with the client from openapi-generator: node openapi_generator.js URL KEY
// LIVE_KEY.
// Prints a line for each call: its operation, and a value from the answer.
import { Configuration, DefaultApi, ModelErrorFromJSON, ResponseError } from './sms_client';

const [url = '', key = '', live = ''] = process.argv.slice(2);
const api = new DefaultApi(new Configuration({ basePath: url, accessToken: key }));
const sms = { number: '00000001', message: 'Hi' };
const many = { numbers: '00000001\n+00000002', message: 'Hi' };
const rows = { bulksms: '00000001,Hi\n00000001,Hi, you' };

function print(operation: string, word: string | null | undefined): void {
  console.log(operation, word);
}

async function run(): Promise<void> {
  const transid = (await api.send({ key, ...sms })).transid ?? '';
  print('send', transid);
  print('sendWithHeader', (await api.sendWithHeader({ idempotencyKey: 'k', ...sms })).transid);
  print('sendPost', (await api.sendPost({ key, sendParameters: sms })).transid);
  print('sendPost', (await api.sendPost({ key, ...sms })).transid);
  print('sendPostWithHeader', (await api.sendPostWithHeader({ sendParameters: sms })).transid);
  print('bulk', (await api.bulk({ key, ...rows })).batchid);
  const batchid = (await api.bulkWithHeader(many)).batchid ?? '';
  print('bulkWithHeader', batchid);
  print('report', (await api.report({ key, transid })).report.transid);
  print('reportWithHeader', (await api.reportWithHeader({ transid })).report.transid);
  print('reports', (await api.reports({ key, transid })).reports[0]?.transid);
  print('reportsWithHeader', (await api.reportsWithHeader()).reports[0]?.transid);
  print('batch', (await api.batch({ key, batchid })).batch.batchid);
  print('batchWithHeader', (await api.batchWithHeader({ batchid })).batch.batchid);
  print('batches', (await api.batches({ key })).batches[0]?.batchid);
  print('batchesWithHeader', (await api.batchesWithHeader({ limit: 1 })).batches[0]?.batchid);
  const inbound = await api.inbound({ key, number: '57000001' });
  print('inbound', String(inbound.inbound.length));
  const sendat = new Date(Date.now() + 3_600_000).toISOString();
  const waiting = (await api.bulk({ key, sendat, ...rows })).batchid ?? '';
  const pause = { key, batchid: waiting, batchChangeParameters: { pause: '1' as const } };
  print('changeBatch', (await api.changeBatch(pause)).batch.batchid);
  const resume = { batchid: waiting, batchChangeParameters: { resume: '1' as const } };
  print('changeBatchWithHeader', (await api.changeBatchWithHeader(resume)).batch.batchid);
  const later = (await api.send({ key, sendat, validity: '60', ...sms })).transid ?? '';
  print('cancel', String((await api.cancel({ key, transid: later })).cancelled));
  const stop = { cancelParameters: { batchid: waiting } };
  print('cancelWithHeader', String((await api.cancelWithHeader(stop)).cancelled));
  const signedInbound = await api.inboundWithHeader({ limit: 1 });
  print('inboundWithHeader', String(signedInbound.inbound.length));
  print('events', (await api.events({ key })).next);
  print('eventsWithHeader', (await api.eventsWithHeader({ type: 'batch.done' })).next);
  const hook = { url: 'https://example.com/a' };
  print('createWebhook', (await api.createWebhook({ key, ...hook })).webhook.webhookid);
  const created = await api.createWebhookWithHeader({ webhookParameters: hook });
  const { webhookid } = created.webhook;
  print('createWebhookWithHeader', webhookid);
  print('webhooks', (await api.webhooks({ key })).webhooks[0]?.webhookid);
  print('webhooksWithHeader', (await api.webhooksWithHeader()).webhooks[0]?.webhookid);
  print('webhook', (await api.webhook({ key, webhookid })).webhook.webhookid);
  print('webhookWithHeader', (await api.webhookWithHeader({ webhookid })).webhook.webhookid);
  const rotation = { key, webhookid, webhookChangeParameters: { rotate: '1' as const } };
  print('changeWebhook', (await api.changeWebhook(rotation)).webhook.webhookid);
  const removal = { webhookid, webhookChangeParameters: { remove: '1' as const } };
  const removed = await api.changeWebhookWithHeader(removal);
  print('changeWebhookWithHeader', removed.webhook.webhookid);
  const added = await api.changeOptouts({ key, number: '71234568' });
  print('changeOptouts', String(added.added));
  print('optouts', (await api.optouts({ key })).optouts[0]?.number);
  const number = '+26671234568';
  print('optoutsWithHeader', (await api.optoutsWithHeader({ number })).optouts[0]?.number);
  const changed = await api.changeOptoutsWithHeader({ number, remove: '1' });
  print('changeOptoutsWithHeader', String(changed.removed));
  const testInboundParameters = { number: '57000001', recipient: '50000009', message: 'Hi' };
  const arrival = { testInboundParameters };
  print('testInbound', (await api.testInbound({ key, ...arrival })).inbound.message);
  print('testInboundWithHeader', (await api.testInboundWithHeader(arrival)).inbound.message);
  const advanced = await api.testClock({ key, testClockParameters: { advance: '60' } });
  print('testClock', String(advanced.offset));
  const reset = { testClockParameters: { reset: '1' as const } };
  print('testClockWithHeader', String((await api.testClockWithHeader(reset)).offset));
  const startParameters = { number: '57000011' };
  const one = (await api.verifyStart({ key, startParameters })).verifyid;
  print('verifyStart', one);
  const checkParameters = { verifyid: one, otp: '987654' };
  print('verifyCheck', String((await api.verifyCheck({ key, checkParameters })).triesLeft));
  const second = { startParameters: { number: '57000012' } };
  const two = (await api.verifyStartWithHeader(second)).verifyid;
  print('verifyStartWithHeader', two);
  const typed = { checkParameters: { verifyid: two, otp: '987654' } };
  print('verifyCheckWithHeader', String((await api.verifyCheckWithHeader(typed)).triesLeft));
  const liveApi = new DefaultApi(new Configuration({ basePath: url, accessToken: live }));
  const limitParameters = { perRecipientDay: '7', prefixes: '' };
  const limited = await api.changeLimits({ key: live, limitParameters });
  print('changeLimits', String(limited.limits.perRecipientDay));
  const signedLimited = await liveApi.changeLimitsWithHeader({ limitParameters });
  print('changeLimitsWithHeader', String(signedLimited.limits.perRecipientDay));
  print('limits', String((await api.limits({ key: live })).limits.perRecipientDay));
  print('limitsWithHeader', String((await liveApi.limitsWithHeader()).limits.perRecipientDay));
  print('balance', (await api.balance({ key })).currency);
  print('balanceWithHeader', (await api.balanceWithHeader()).currency);
  print('prices', (await api.prices({ key })).prices[0]?.currency);
  print('pricesWithHeader', (await api.pricesWithHeader({ number: '26657000001' })).price?.rule);
  print('openapi', (await api.openapi() as { openapi: string }).openapi);
  try {
    await new DefaultApi(new Configuration({ basePath: url })).balance({ key: '0wrong' });
  } catch (refused) {
    if (!(refused instanceof ResponseError)) throw refused;
    print('refused', ModelErrorFromJSON(await refused.response.json()).reason);
  }
}

void run();
