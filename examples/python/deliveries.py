"""Real GitHub webhook deliveries, as a consumer meets them.

The payloads are those of the npm package @octokit/webhooks-examples.
"""

import json
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import UUID

from consumer import Message


def load_deliveries(package: Path) -> list[Message]:
    """All deliveries, from the directory in which the package is installed."""
    main = json.loads((package / "package.json").read_bytes())["main"]
    return [
        Message(
            type=f"{event['name']}.{payload['action']}"
            if "action" in payload
            else event["name"],
            id=_delivery_id(event["name"], index),
            context_id=_context_id(payload),
            body=json.dumps(payload).encode(),
        )
        for event in json.loads((package / main).read_bytes())
        for index, payload in enumerate(event["examples"])
    ]


def _delivery_id(event: str, index: int) -> str:
    # GitHub sends a delivery's uuid in the header X-GitHub-Delivery, which the
    # package doesn't hold. Some of its payloads are equal, so the place in the
    # package identifies a delivery, not the payload.
    return str(UUID(bytes=sha256(f"{event} {index}".encode()).digest()[:16]))


def _context_id(payload: dict[str, Any]) -> str | None:
    """The issue or pull request that a payload is about, if there is one."""
    subject = payload.get("issue") or payload.get("pull_request")
    if "repository" not in payload or subject is None:
        return None
    return f"{payload['repository']['full_name']}#{subject['number']}"
