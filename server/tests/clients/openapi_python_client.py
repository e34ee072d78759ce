"""Calls the API with the client from openapi-python-client: openapi_python_client.py URL KEY
LIVE_KEY.

Prints a line for each call: its operation, and a value from the answer.
"""

import sys
from datetime import datetime, timedelta, timezone

from sms_client import AuthenticatedClient, Client
from sms_client import models
from sms_client.api.default import (
    balance,
    balance_with_header,
    batch,
    batch_with_header,
    batches,
    batches_with_header,
    bulk,
    bulk_with_header,
    cancel,
    cancel_with_header,
    change_batch,
    change_batch_with_header,
    change_limits,
    change_limits_with_header,
    change_optouts,
    change_optouts_with_header,
    change_webhook,
    change_webhook_with_header,
    create_webhook,
    create_webhook_with_header,
    events,
    events_with_header,
    inbound,
    inbound_with_header,
    limits,
    limits_with_header,
    openapi,
    optouts,
    optouts_with_header,
    prices,
    prices_with_header,
    report,
    report_with_header,
    reports,
    reports_with_header,
    send,
    send_post,
    send_post_with_header,
    send_with_header,
    test_clock,
    test_clock_with_header,
    test_inbound,
    test_inbound_with_header,
    verify_check,
    verify_check_with_header,
    verify_start,
    verify_start_with_header,
    webhook,
    webhook_with_header,
    webhooks,
    webhooks_with_header,
)

url, key, live = sys.argv[1:]
plain = Client(base_url=url)
signed = AuthenticatedClient(base_url=url, token=key)
sms = {"number": "00000001", "message": "Hi"}
many = {"numbers": "00000001\n+00000002", "message": "Hi"}
rows = {"bulksms": "00000001,Hi\n00000001,Hi, you"}

transid = send.sync(key, client=plain, **sms).transid
print("send", transid)
print("sendWithHeader", send_with_header.sync(client=signed, idempotency_key="k", **sms).transid)
body = models.SendParameters(**sms)
print("sendPost", send_post.sync(key, client=plain, body=body).transid)
print("sendPostWithHeader", send_post_with_header.sync(client=signed, body=body).transid)
print("sendPost", send_post.sync(key, client=plain, **sms).transid)

for body in models.OneToOne(**rows), models.OneToMany(**many), models.BulkMultipart(**many):
    batchid = bulk.sync(key, client=plain, body=body).batchid
    print("bulk", batchid)
    print("bulkWithHeader", bulk_with_header.sync(client=signed, body=body).batchid)

print("report", report.sync(key, transid, client=plain).report.transid)
print("reportWithHeader", report_with_header.sync(transid, client=signed).report.transid)
print("reports", reports.sync(key, client=plain, transid=transid).reports[0].transid)
print("reportsWithHeader", reports_with_header.sync(client=signed).reports[0].transid)
print("batch", batch.sync(key, batchid, client=plain).batch.batchid)
print("batchWithHeader", batch_with_header.sync(batchid, client=signed).batch.batchid)
print("batches", batches.sync(key, client=plain).batches[0].batchid)
print("batchesWithHeader", batches_with_header.sync(client=signed, limit=1).batches[0].batchid)
later = (datetime.now(timezone.utc) + timedelta(hours=1)).isoformat(timespec="seconds")
waiting = bulk.sync(key, client=plain, body=models.OneToOne(sendat=later, **rows)).batchid
change = models.BatchChangeParameters(pause=models.OnlyOne.VALUE_0)
changed = change_batch.sync(key, waiting, client=plain, body=change)
print("changeBatch", changed.batch.batchid)
change = models.BatchChangeParameters(resume=models.OnlyOne.VALUE_0)
changed = change_batch_with_header.sync(waiting, client=signed, body=change)
print("changeBatchWithHeader", changed.batch.batchid)
message = send.sync(key, client=plain, sendat=later, validity="60", **sms).transid
print("cancel", cancel.sync(key, client=plain, transid=message).cancelled)
stop = models.CancelParameters(batchid=waiting)
print("cancelWithHeader", cancel_with_header.sync(client=signed, body=stop).cancelled)
print("inbound", len(inbound.sync(key, client=plain, number="57000001").inbound))
print("inboundWithHeader", len(inbound_with_header.sync(client=signed, limit=1).inbound))
print("events", events.sync(key, client=plain).next_)
print("eventsWithHeader", events_with_header.sync(client=signed, type_="batch.done").next_)
hook = "https://example.com/a"
created = create_webhook.sync(key, client=plain, url_query=hook)
print("createWebhook", created.webhook.webhookid)
new = models.WebhookParameters(url=hook, events="batch.done")
created = create_webhook_with_header.sync(client=signed, body=new)
webhookid = created.webhook.webhookid
print("createWebhookWithHeader", webhookid)
print("webhooks", webhooks.sync(key, client=plain).webhooks[0].webhookid)
print("webhooksWithHeader", webhooks_with_header.sync(client=signed).webhooks[0].webhookid)
print("webhook", webhook.sync(key, webhookid, client=plain).webhook.webhookid)
found = webhook_with_header.sync(webhookid, client=signed, limit=1)
print("webhookWithHeader", found.webhook.webhookid)
change = models.WebhookChangeParameters(rotate=models.OnlyOne.VALUE_0)
changed = change_webhook.sync(key, webhookid, client=plain, body=change)
print("changeWebhook", changed.webhook.webhookid)
change = models.WebhookChangeParameters(remove=models.OnlyOne.VALUE_0)
changed = change_webhook_with_header.sync(webhookid, client=signed, body=change)
print("changeWebhookWithHeader", changed.webhook.webhookid)
file = models.OptOutMultipart(numbers="71234568\n+26671234568")
print("changeOptouts", change_optouts.sync(key, client=plain, body=file).added)
print("optouts", optouts.sync(key, client=plain).optouts[0].number)
found = optouts_with_header.sync(client=signed, number="+26671234568")
print("optoutsWithHeader", found.optouts[0].number)
removal = models.OptOutNumber(number="71234568", remove=models.OnlyOne.VALUE_0)
removed = change_optouts_with_header.sync(client=signed, body=removal).removed
print("changeOptoutsWithHeader", removed)
arrival = models.TestInboundParameters(number="57000001", recipient="50000009", message="Hi")
print("testInbound", test_inbound.sync(key, client=plain, body=arrival).inbound.message)
arrived = test_inbound_with_header.sync(client=signed, body=arrival).inbound
print("testInboundWithHeader", arrived.message)
advance = models.TestClockParameters(advance="60")
print("testClock", test_clock.sync(key, client=plain, body=advance).offset)
back = models.TestClockParameters(reset=models.OnlyOne.VALUE_0)
print("testClockWithHeader", test_clock_with_header.sync(client=signed, body=back).offset)
number = models.StartParameters(number="57000011")
started = verify_start.sync(key, client=plain, body=number).verifyid
print("verifyStart", started)
typed = models.CheckParameters(verifyid=started, otp="987654")
print("verifyCheck", verify_check.sync(key, client=plain, body=typed).tries_left)
number = models.StartParameters(number="57000012")
started = verify_start_with_header.sync(client=signed, body=number).verifyid
print("verifyStartWithHeader", started)
typed = models.CheckParameters(verifyid=started, otp="987654")
print("verifyCheckWithHeader", verify_check_with_header.sync(client=signed, body=typed).tries_left)
live_client = AuthenticatedClient(base_url=url, token=live)
wanted = models.LimitParameters(per_recipient_day="7", prefixes="")
changed = change_limits.sync(live, client=plain, body=wanted)
print("changeLimits", changed.limits.per_recipient_day)
changed = change_limits_with_header.sync(client=live_client, body=wanted)
print("changeLimitsWithHeader", changed.limits.per_recipient_day)
print("limits", limits.sync(live, client=plain).limits.per_recipient_day)
print("limitsWithHeader", limits_with_header.sync(client=live_client).limits.per_recipient_day)
print("balance", balance.sync(key, client=plain).currency)
print("balanceWithHeader", balance_with_header.sync(client=signed).currency)
print("prices", prices.sync(key, client=plain).prices[0].currency)
print("pricesWithHeader", prices_with_header.sync(client=signed, number="26657000001").price.rule)
print("openapi", openapi.sync(client=plain)["openapi"])
print("refused", send.sync("wrong", client=plain, **sms).reason)
