"""Calls the API with the client from openapi-generator: openapi_generator.py URL KEY
LIVE_KEY.

Prints a line for each call: its operation, and a value from the answer.
"""

import sys
from datetime import datetime, timedelta, timezone

from sms_client import (
    ApiClient,
    ApiException,
    BatchChangeParameters,
    CancelParameters,
    Configuration,
    DefaultApi,
    LimitParameters,
    SendParameters,
    WebhookChangeParameters,
    WebhookParameters,
)

url, key, live = sys.argv[1:]
api = DefaultApi(ApiClient(Configuration(host=url, access_token=key)))
sms = {"number": "00000001", "message": "Hi"}
many = {"numbers": "00000001\n+00000002", "message": "Hi"}
rows = {"bulksms": "00000001,Hi\n00000001,Hi, you"}

transid = api.send(key, **sms).transid
print("send", transid)
print("sendWithHeader", api.send_with_header(idempotency_key="k", **sms).transid)
body = SendParameters(**sms)
print("sendPost", api.send_post(key, send_parameters=body).transid)
print("sendPost", api.send_post(key, **sms).transid)
print("sendPostWithHeader", api.send_post_with_header(send_parameters=body).transid)

for kind in "application/x-www-form-urlencoded", "multipart/form-data":
    print("bulk", api.bulk(key, **rows, _content_type=kind).batchid)
    batchid = api.bulk_with_header(**many, _content_type=kind).batchid
    print("bulkWithHeader", batchid)

print("report", api.report(key, transid).report.transid)
print("reportWithHeader", api.report_with_header(transid).report.transid)
print("reports", api.reports(key, transid=transid).reports[0].transid)
print("reportsWithHeader", api.reports_with_header().reports[0].transid)
print("batch", api.batch(key, batchid).batch.batchid)
print("batchWithHeader", api.batch_with_header(batchid).batch.batchid)
print("batches", api.batches(key).batches[0].batchid)
print("batchesWithHeader", api.batches_with_header(limit=1).batches[0].batchid)
later = (datetime.now(timezone.utc) + timedelta(hours=1)).isoformat(timespec="seconds")
kind = "application/x-www-form-urlencoded"
waiting = api.bulk(key, sendat=later, _content_type=kind, **rows).batchid
change = BatchChangeParameters(pause="1")
changed = api.change_batch(key, waiting, batch_change_parameters=change)
print("changeBatch", changed.batch.batchid)
change = BatchChangeParameters(resume="1")
changed = api.change_batch_with_header(waiting, batch_change_parameters=change)
print("changeBatchWithHeader", changed.batch.batchid)
message = api.send(key, sendat=later, validity="60", **sms).transid
print("cancel", api.cancel(key, transid=message).cancelled)
stop = CancelParameters(batchid=waiting)
print("cancelWithHeader", api.cancel_with_header(cancel_parameters=stop).cancelled)
print("inbound", len(api.inbound(key, number="57000001").inbound))
print("inboundWithHeader", len(api.inbound_with_header(limit=1).inbound))
print("events", api.events(key).next)
print("eventsWithHeader", api.events_with_header(type="batch.done").next)
hook = "https://example.com/a"
print("createWebhook", api.create_webhook(key, url=hook).webhook.webhookid)
new = WebhookParameters(url=hook, events="batch.done")
webhookid = api.create_webhook_with_header(webhook_parameters=new).webhook.webhookid
print("createWebhookWithHeader", webhookid)
print("webhooks", api.webhooks(key).webhooks[0].webhookid)
print("webhooksWithHeader", api.webhooks_with_header().webhooks[0].webhookid)
print("webhook", api.webhook(key, webhookid).webhook.webhookid)
print("webhookWithHeader", api.webhook_with_header(webhookid, limit=1).webhook.webhookid)
change = WebhookChangeParameters(rotate="1")
changed = api.change_webhook(key, webhookid, webhook_change_parameters=change)
print("changeWebhook", changed.webhook.webhookid)
change = WebhookChangeParameters(remove="1")
changed = api.change_webhook_with_header(webhookid, webhook_change_parameters=change)
print("changeWebhookWithHeader", changed.webhook.webhookid)
kind = "application/x-www-form-urlencoded"
print("changeOptouts", api.change_optouts(key, number="71234568", _content_type=kind).added)
print("optouts", api.optouts(key).optouts[0].number)
print("optoutsWithHeader", api.optouts_with_header(number="+26671234568").optouts[0].number)
removal = {"number": "71234568", "remove": "1"}
removed = api.change_optouts_with_header(**removal, _content_type="multipart/form-data").removed
print("changeOptoutsWithHeader", removed)
arrival = {"number": "57000001", "recipient": "50000009", "message": "Hi"}
arrived = api.test_inbound(key, arrival).inbound
print("testInbound", arrived.message)
arrived = api.test_inbound_with_header(arrival).inbound
print("testInboundWithHeader", arrived.message)
print("testClock", api.test_clock(key, {"advance": "60"}).offset)
print("testClockWithHeader", api.test_clock_with_header({"reset": "1"}).offset)
for number, suffix in (("57000011", ""), ("57000012", "_with_header")):
    of = () if suffix else (key,)
    name = "WithHeader" if suffix else ""
    started = getattr(api, "verify_start" + suffix)(*of, {"number": number}).verifyid
    print("verifyStart" + name, started)
    typed = {"verifyid": started, "otp": "987654"}
    print("verifyCheck" + name, getattr(api, "verify_check" + suffix)(*of, typed).tries_left)
live_api = DefaultApi(ApiClient(Configuration(host=url, access_token=live)))
wanted = LimitParameters(per_recipient_day="7", prefixes="")
print("changeLimits", api.change_limits(live, limit_parameters=wanted).limits.per_recipient_day)
changed = live_api.change_limits_with_header(limit_parameters=wanted)
print("changeLimitsWithHeader", changed.limits.per_recipient_day)
print("limits", api.limits(live).limits.per_recipient_day)
print("limitsWithHeader", live_api.limits_with_header().limits.per_recipient_day)
print("balance", api.balance(key).currency)
print("balanceWithHeader", api.balance_with_header().currency)
print("prices", api.prices(key).prices[0].currency)
print("pricesWithHeader", api.prices_with_header(number="26657000001").price.rule)
print("openapi", api.openapi()["openapi"])
try:
    DefaultApi(ApiClient(Configuration(host=url))).balance("0wrong")
except ApiException as refused:
    print("refused", refused.data.reason.value)
