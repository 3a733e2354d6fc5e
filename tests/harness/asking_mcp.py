"""An MCP server of 2026 that needs to know something before it acts: `python asking_mcp.py FILE`.

It is written without the SDK, so that it starts quickly. FILE gets a line for every order that was really placed. The
state that it gives is good only for the process that gave it, as with most servers.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

TOOL = {
    "name": "order",
    "description": "Order an article.",
    "inputSchema": {"type": "object", "properties": {"article": {"type": "string"}}, "required": ["article"]},
}
FORM = {"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]}
ABOUT = {"resultType": "complete", "ttlMs": 0, "cacheScope": "public"}


def result_of(params: dict[str, Any], done: Path) -> dict[str, Any]:
    """Raises `ValueError` for a state of another process."""
    article = params["arguments"]["article"]
    if "inputResponses" not in params:
        asked = {"mode": "form", "message": f"How many of {article}?", "requestedSchema": FORM}
        wanted = {"many": {"method": "elicitation/create", "params": asked}}
        return {"resultType": "input_required", "inputRequests": wanted, "requestState": f"state of {os.getpid()}"}
    if params.get("requestState") != f"state of {os.getpid()}":
        raise ValueError(params.get("requestState"))
    answer = params["inputResponses"]["many"]
    if answer["action"] != "accept":
        return {"resultType": "complete", "content": [{"type": "text", "text": "not ordered"}]}
    said = f"ordered {answer['content']['number']} {article}"
    with done.open("a") as file:
        file.write(f"{said}\n")
    return {"resultType": "complete", "content": [{"type": "text", "text": said}]}


def main(done: Path) -> None:
    for line in sys.stdin:
        message = json.loads(line)
        reply: dict[str, Any] = {"jsonrpc": "2.0", "id": message.get("id")}
        match message.get("method"):
            case "server/discover":
                reply["result"] = {**ABOUT, "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
            case "tools/list":
                reply["result"] = {**ABOUT, "tools": [TOOL]}
            case "tools/call":
                try:
                    reply["result"] = result_of(message["params"], done)
                except ValueError as error:
                    reply["error"] = {"code": -32602, "message": f"This is not a state of mine: {error}"}
            case _:
                continue
        print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
