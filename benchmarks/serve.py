"""Requests a second of `tacit serve` on loopback, beside a bare FastAPI "hello" in the same run.

    python benchmarks/serve.py              # needs the extra `serve`; about a minute

The model has 400 items and 20 factors; a person sends 10 ratings. Eight connections send one
request after another, 2000 of each kind or ten seconds, whichever is less. Both servers and the
caller share the machine, so what counts is the ratio to "hello". Rounds alternate; each row is the
better of two.
"""

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from web import save_random

HELLO = """
import sys, uvicorn
from fastapi import FastAPI
app = FastAPI()
@app.get("/")
def hello():
    return {"hello": "world"}
uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), access_log=False, log_level="critical")
"""
PORT = 8940
CONNECTIONS, REQUESTS, SECONDS, PEOPLE = 8, 2000, 10.0, 50
OWN = {str(at): 1.0 + at % 4 for at in range(0, 100, 10)}


def request(method: str, path: str, body: object = None) -> bytes:
    content = b"" if body is None else json.dumps(body).encode()
    head = f"{method} {path} HTTP/1.1\r\nhost: x\r\ncontent-length: {len(content)}\r\n"
    return head.encode() + b"content-type: application/json\r\n\r\n" + content


CASES = {
    'GET "hello" (bare FastAPI)': (PORT + 1, request("GET", "/")),
    "GET /health": (PORT, request("GET", "/health")),
    "POST /v1/recommend, 10 items": (PORT, request("POST", "/v1/recommend", {"ratings": OWN})),
    "POST /v1/predict, all items": (PORT, request("POST", "/v1/predict", {"ratings": OWN})),
    f"POST /v1/recommend/batch, {PEOPLE} people": (
        PORT,
        request("POST", "/v1/recommend/batch", {"requests": [{"ratings": OWN}] * PEOPLE}),
    ),
}


async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, sent: bytes) -> None:
    writer.write(sent)
    head = await reader.readuntil(b"\r\n\r\n")
    if b" 200 " not in head.split(b"\r\n", 1)[0]:
        raise SystemExit(f"not answered: {head[:80]!r}")
    length = next(
        int(row.split(b":")[1]) for row in head.lower().split(b"\r\n") if b"content-length" in row
    )
    await reader.readexactly(length)


async def load(port: int, sent: bytes) -> tuple[float, list[float]]:
    """Send many requests; return how long it took, and how long each one did."""
    taken: list[float] = []
    left = [REQUESTS]
    started = time.perf_counter()

    async def connection() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while left[0] > 0 and time.perf_counter() - started < SECONDS:
            left[0] -= 1
            before = time.perf_counter()
            await one(reader, writer, sent)
            taken.append(time.perf_counter() - before)
        writer.close()

    await asyncio.gather(*(connection() for _ in range(CONNECTIONS)))
    return time.perf_counter() - started, taken


async def ready(port: int, path: str) -> None:
    for _ in range(600):
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            await one(reader, writer, request("GET", path))
        except OSError:
            await asyncio.sleep(0.1)
        else:
            writer.close()
            return
    raise SystemExit("a server did not start")


async def measure() -> None:
    await ready(PORT, "/health")
    await ready(PORT + 1, "/")
    best: dict[str, tuple[float, float, float]] = {}
    for _ in range(2):
        for name, (port, sent) in CASES.items():
            seconds, taken = await load(port, sent)
            p50, p99 = np.percentile(taken, [50, 99]) * 1e3
            rate = len(taken) / seconds
            if name not in best or rate > best[name][0]:
                best[name] = (rate, p50, p99)
    hello = next(iter(best.values()))[0]
    print(f"{'request':<40}{'per second':>12}{'of hello':>10}{'p50 ms':>9}{'p99 ms':>9}")
    for name, (rate, p50, p99) in best.items():
        print(f"{name:<40}{rate:>12.0f}{100 * rate / hello:>9.0f}%{p50:>9.1f}{p99:>9.1f}")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model.tacit"
        save_random(model, 400)
        tacit = [sys.executable, "-m", "tacit", "serve", str(model), "--port", str(PORT)]
        hello = [sys.executable, "-c", HELLO, str(PORT + 1)]
        servers = [subprocess.Popen(command) for command in (tacit, hello)]
        try:
            asyncio.run(measure())
        finally:
            for server in servers:
                server.terminate()
                server.wait(30)


if __name__ == "__main__":
    main()
