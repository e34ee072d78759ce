# Needs Python 3.9 or newer, and no packages.
import base64
import hmac
import json
import os
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

secret = os.environ.get("HELIOGRAPH_WEBHOOK_SECRET", "")
if not secret.startswith("whsec_"):
    raise SystemExit("Set HELIOGRAPH_WEBHOOK_SECRET.")
key = base64.b64decode(secret.removeprefix("whsec_"))

# An event can arrive more than once. Keep the IDs in your database: these are lost at a restart.
received = set()
lock = threading.Lock()


def is_genuine(headers, body):
    """Returns whether Heliograph signed this request within the last 5 minutes."""
    timestamp = headers.get("webhook-timestamp", "")
    content = f"{headers.get('webhook-id')}.{timestamp}.".encode() + body
    expected = b"v1," + base64.b64encode(hmac.digest(key, content, "sha256"))
    # During a change of the secret, there are several signatures, separated by spaces.
    signatures = headers.get("webhook-signature", "").encode().split()
    is_signed = any(hmac.compare_digest(signature, expected) for signature in signatures)
    return is_signed and abs(time.time() - int(timestamp)) <= 300


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self):
        # The signature covers these bytes exactly, so verify them before you parse them.
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if is_genuine(self.headers, body):
            event = json.loads(body)
            with lock:
                if event["id"] not in received:
                    print(event["id"], event["type"], json.dumps(event["data"]), flush=True)
                    received.add(event["id"])
            self.send_response(204)
        else:
            self.send_response(401)
        self.end_headers()


port = int(os.environ.get("PORT", 8000))
ThreadingHTTPServer(("127.0.0.1", port), Receiver).serve_forever()
