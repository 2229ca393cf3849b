"""What is refused before anything else happens: other hosts, other pages, other tokens, large requests.

A page of another site can send requests to this machine, and a name of another site can be made to resolve to it. So the
host must be a loopback name with our port, the origin must be ours if the browser gives one, and the path must begin with a
token that only the printed address contains.
"""

from __future__ import annotations

import asyncio
import hmac
import re
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

__all__ = ["MOST_BYTES", "MOST_PATH", "POLICY", "guarded"]

MOST_BYTES = 1_000_000
"""Largest body of a request [bytes]."""

MOST_PATH = 1_000
"""Longest path of a request, with its query [bytes]."""

LONGEST_BODY_S = 10.0
"""Until a body is complete [s]."""

EMPTY = "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="
"""Of no bytes: an empty style element, to which the library of the charts adds its rules by script."""

POLICY = (
    f"default-src 'none'; script-src 'self'; style-src 'self' '{EMPTY}'; img-src 'self' data: blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""Content-Security-Policy: files of this server alone, no script or style in the page itself; pictures that it makes."""

HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
METHODS = ("GET", "HEAD", "POST", "DELETE")

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


def guarded(app: App, token: str, port: int) -> App:
    """The application behind the checks; it sees paths without the token.

    Args:
        app: that answers.
        token: of the address.
        port: that the server listens on.
    """
    hosts = {f"{name}:{port}".encode() for name in ("127.0.0.1", "localhost", "[::1]")}
    prefix = f"/{token}".encode()

    def refusal(scope: Scope) -> tuple[int, str] | None:
        """Status and reason, or None."""
        headers: dict[bytes, list[bytes]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.lower(), []).append(value)
        host = headers.get(b"host", [])
        if len(host) != 1 or host[0].lower() not in hosts:
            return 403, "host: not the address that opticcl explore printed"
        origins = headers.get(b"origin", [])
        if any(origin.lower() != b"http://" + host[0].lower() for origin in origins):
            return 403, "origin: requests of other pages are refused"
        if headers.get(b"sec-fetch-site", [b"none"])[0] not in (b"same-origin", b"none"):
            return 403, "sec-fetch-site: requests of other pages are refused"
        path = scope["path"].encode()
        if not hmac.compare_digest(path[: len(prefix)], prefix) or path[len(prefix) : len(prefix) + 1] != b"/":
            return 403, "token: open the whole address that opticcl explore printed"
        if len(path) + len(scope.get("query_string", b"")) > MOST_PATH:
            return 414, f"path: more than {MOST_PATH:,} bytes"
        if scope["method"] not in METHODS:
            return 405, f"method: {', '.join(METHODS)} are answered"
        length = headers.get(b"content-length", [b"0"])[0]
        if not re.fullmatch(b"[0-9]{1,18}", length) or int(length) > MOST_BYTES:
            return 413, f"body: more than {MOST_BYTES:,} bytes"
        return None

    async def guard(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        refused = refusal(scope)
        if refused is not None:
            await _refuse(send, *refused)
            return
        try:
            async with asyncio.timeout(LONGEST_BODY_S):
                body = await _body(receive)
        except TimeoutError:
            await _refuse(send, 408, f"body: not complete after {LONGEST_BODY_S:g} s")
            return
        if body is None:
            await _refuse(send, 413, f"body: more than {MOST_BYTES:,} bytes")
            return
        given: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def read_already() -> Message:
            return given.pop() if given else await receive()

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *((k.encode(), v.encode()) for k, v in HEADERS.items())]
            await send(message)

        inner = {**scope, "path": scope["path"][len(prefix) :], "raw_path": None}
        await app(inner, read_already, with_headers)

    return guard


async def _body(receive: Receive) -> bytes | None:
    """The body of a request; None: it is larger than `MOST_BYTES`, and the rest is not read."""
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > MOST_BYTES:
            return None
        if message["type"] != "http.request" or not message.get("more_body", False):
            return b"".join(parts)


async def _refuse(send: Send, status: int, reason: str) -> None:
    """Answer with one line.

    Args:
        send: of the request.
        status: of the answer.
        reason: in words.
    """
    body = f"opticcl explore: {reason}\n".encode()
    headers = {**HEADERS, "content-type": "text/plain; charset=utf-8", "content-length": str(len(body))}
    encoded = [(name.encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": encoded})
    await send({"type": "http.response.body", "body": body})
