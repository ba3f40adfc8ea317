"""Registers a client at a deployed Tidegate and prints its key: `register_client.py URL CLIENT_ID [PATTERN ...]`.

Its jobs may name the addresses that a pattern covers, any without one. The admin key is in the environment variable TIDEGATE_E2E_ADMIN_KEY.
"""

import json
import os
import sys
import urllib.request

url, client_id, *patterns = sys.argv[1:]
headers = {"authorization": f"Bearer {os.environ['TIDEGATE_E2E_ADMIN_KEY']}", "content-type": "application/json"}
body = json.dumps({"client_id": client_id, "allowed_targets": patterns or ["*"]}).encode()
request = urllib.request.Request(f"{url.rstrip('/')}/v1/clients", body, headers, method="POST")
with urllib.request.urlopen(request, timeout=30) as answer:
    print(json.load(answer)["api_key"])
