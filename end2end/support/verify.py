"""Verifies deliveries with the package standardwebhooks from PyPI.

Reads a JSON list of deliveries from standard input. Prints a JSON list with the type of each event,
or null if the package refuses the delivery.
"""

import json
import sys

from standardwebhooks.webhooks import Webhook, WebhookVerificationError


def event_type(delivery):
    webhook = Webhook(delivery["secret"])
    try:
        return webhook.verify(delivery["body"], delivery["headers"])["type"]
    except WebhookVerificationError:
        return None


print(json.dumps([event_type(delivery) for delivery in json.load(sys.stdin)]))
