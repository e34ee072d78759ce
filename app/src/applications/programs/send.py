# Needs Python 3.8 or newer, and no packages.
import json
import os
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid

sms = {"number": "NUMBER", "message": "Hello from Heliograph", "requestid": "order-4711"}
# Use one Idempotency-Key per message. A repeated call with the same one sends nothing twice.
headers = {
    "Authorization": "Bearer " + os.environ["HELIOGRAPH_KEY"],
    "Idempotency-Key": str(uuid.uuid4()),
}


def send():
    body = urllib.parse.urlencode(sms).encode()
    for attempt in (1, 2, 3):
        pause = attempt
        request = urllib.request.Request("BASE_URL/sms/send", body, headers)
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as refused:
            busy = refused.code == 429 or refused.code >= 500
            # With a 429 or 503, this header says in how many seconds to try again.
            pause = int(refused.headers.get("Retry-After", attempt))
            if not busy or attempt == 3 or pause > 60:
                return json.load(refused)
        except OSError:
            if attempt == 3:
                raise
        time.sleep(pause)


answer = send()
if answer["code"] == 200:
    print(f"Accepted as {answer['transid']} for {answer['cost']}.")
else:
    print(f"Refused, {answer['reason']}: {answer['text']}")
