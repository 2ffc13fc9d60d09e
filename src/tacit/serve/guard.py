"""What stands before every request: token, body, concurrency, headers, and counts.

It is plain ASGI, outside of all else. Nothing of a request is kept or logged, and an error inside
becomes a bare 500: a traceback would quote what someone sent.
"""

import asyncio
import hmac
import json
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from tacit.serve.limits import Limits
from tacit.serve.metrics import Metrics
from tacit.serve.site import POLICY

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]

_HEADERS = {
    "content-security-policy": POLICY + "; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}


class _RefusedError(Exception):
    """A request that is not passed on: a status, and words for the caller."""

    def __init__(self, status: int, words: str, **headers: str) -> None:
        super().__init__(words)
        self.status, self.headers = status, headers


class Guard:
    """Passes on what is allowed, and counts everything."""

    def __init__(
        self, app: App, limits: Limits, metrics: Metrics, token: str | None, routes: frozenset[str]
    ) -> None:
        self._app, self._limits, self._metrics = app, limits, metrics
        self._token = None if token is None else f"Bearer {token}".encode()
        self._routes = routes

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, status = time.perf_counter(), [0]

        async def send_on(message: Message) -> None:
            if message["type"] == "http.response.start":
                status[0] = message["status"]
                message = {**message, "headers": _with_headers(message["headers"])}
            await send(message)

        try:
            await self._passed_on(scope, receive, send_on)
        except _RefusedError as refused:
            await _answer(send_on, refused.status, str(refused), refused.headers)
        except Exception:  # noqa: BLE001, RUF100  # whatever it was, it may quote a rating
            if not status[0]:
                await _answer(send_on, 500, "something is wrong with this server", {})
        route = scope["path"] if scope["path"] in self._routes else "other"
        self._metrics.request(route, status[0], time.perf_counter() - started)

    async def _passed_on(self, scope: Message, receive: Receive, send: Send) -> None:
        headers = {name.lower(): value for name, value in scope["headers"]}
        self._check_token(scope["path"], headers.get(b"authorization", b""))
        if scope["method"] in {"GET", "HEAD"}:
            await self._app(scope, receive, send)
            return
        if self._metrics.active >= self._limits.at_once:
            raise _RefusedError(429, "too many requests at once; try again", **{"retry-after": "1"})
        self._metrics.active += 1
        try:
            body = await self._body(headers, receive)
            await self._app(scope, _replayed(body, receive), send)
        finally:
            self._metrics.active -= 1

    def _check_token(self, path: str, given: bytes) -> None:
        """The API asks for the token, if there is one; the page holds only what is published."""
        guarded = path.startswith("/v1/") or path == "/metrics"
        if guarded and self._token is not None and not hmac.compare_digest(given, self._token):
            raise _RefusedError(401, "a bearer token is needed", **{"www-authenticate": "Bearer"})

    async def _body(self, headers: dict[bytes, bytes], receive: Receive) -> bytes:
        """Return the whole body, if it is short enough and comes soon enough."""
        most = self._limits.body
        stated = headers.get(b"content-length", b"0")
        if stated.isdigit() and int(stated) > most:
            raise _RefusedError(413, f"the body is longer than {most} bytes")
        try:
            return await asyncio.wait_for(_read(receive, most), self._limits.seconds)
        except TimeoutError:
            raise _RefusedError(408, "the body took too long to arrive") from None


async def _read(receive: Receive, most: int) -> bytes:
    parts, size = [], 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _RefusedError(400, "the request ended before its body")
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > most:
            raise _RefusedError(413, f"the body is longer than {most} bytes")
        if not message.get("more_body", False):
            return b"".join(parts)


def _replayed(body: bytes, receive: Receive) -> Receive:
    """Return a body that was read already, once more; then whatever comes."""
    waiting = [body]

    async def again() -> Message:
        if waiting:
            return {"type": "http.request", "body": waiting.pop(), "more_body": False}
        return await receive()

    return again


def _with_headers(given: Any) -> list[tuple[bytes, bytes]]:
    known = {name.lower() for name, _ in given}
    more = {**_HEADERS, "cache-control": "no-store"}
    added = [(name.encode(), value.encode()) for name, value in more.items()]
    return [*given, *(pair for pair in added if pair[0] not in known)]


async def _answer(send: Send, status: int, words: str, headers: dict[str, str]) -> None:
    body = json.dumps({"detail": words}).encode()
    facts = {"content-type": "application/json", "content-length": str(len(body)), **headers}
    named = [(name.encode(), value.encode()) for name, value in facts.items()]
    await send({"type": "http.response.start", "status": status, "headers": named})
    await send({"type": "http.response.body", "body": body})
