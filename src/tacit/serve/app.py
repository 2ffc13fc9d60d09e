"""The server: the page, the model file, and an API for callers that cannot run JavaScript.

What someone sends is used for her answer and forgotten. Nothing is stored, and nothing is logged
but counts.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Annotated, Any

from fastapi import FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse, Response

from tacit.errors import TacitError
from tacit.serve.answering import items_page, predicted, recommended
from tacit.serve.guard import Guard
from tacit.serve.holder import Holder
from tacit.serve.limits import Limits
from tacit.serve.metrics import Metrics
from tacit.serve.schemas import (
    Answers,
    Items,
    Predictions,
    Problem,
    Recommendations,
    Requests,
    State,
)

_WORDS = {
    400: "The request is malformed.",
    401: "The bearer token is missing or wrong.",
    408: "The body took too long to arrive.",
    413: "The body is too long.",
    422: "The request is not one that this model can answer.",
    429: "Too many requests at once.",
}
_NO_OBJECT = "body: expected a JSON object, sent with the header content-type: application/json"
_PROBLEMS: dict[int | str, dict[str, Any]] = {
    code: {"model": Problem, "description": words} for code, words in _WORDS.items()
}
_REFUSED: dict[int | str, dict[str, Any]] = {code: _PROBLEMS[code] for code in (400, 401, 422)}


def create_app(
    model: Path,
    *,
    limits: Limits | None = None,
    token: str | None = None,
    page: bool = True,
    watch: bool = True,
) -> Any:
    """Return the ASGI application for a model file.

    Args:
        model: the file; a newer one in its place is taken over while the server runs.
        limits: what callers may ask for.
        token: what callers of the API must send as a bearer token; None asks for none.
        page: whether the page and the model file are served, or the API alone.
        watch: whether to look for a newer file.

    Raises:
        ModelFileError: the file is not a valid model.
    """
    bounds, metrics = limits or Limits(), Metrics()
    holder = Holder(model, metrics)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        watching = asyncio.create_task(holder.watch()) if watch else None
        yield
        if watching is not None:
            watching.cancel()
            with suppress(asyncio.CancelledError):
                await watching

    app = FastAPI(
        title="tacit",
        summary="Recommendations from a published model and one's own ratings.",
        version="1",
        docs_url=None,  # it would load programs from elsewhere
        redoc_url=None,
        lifespan=lifespan,
    )
    app.state.holder = holder
    _add_questions(app, holder, metrics, Requests(bounds))
    _add_facts(app, holder, metrics, bounds)
    if page:
        _add_page(app, holder)
    _add_refusals(app)
    routes = frozenset(getattr(route, "path", "") for route in app.routes)
    return Guard(app, bounds, metrics, token, routes)


def _add_questions(app: FastAPI, holder: Holder, metrics: Metrics, asked: Requests) -> None:
    """Add what takes own ratings: for one person, and for several at once."""

    def add(name: str, answer: Callable[..., dict[str, Any]], shapes: tuple[Any, Any, Any]) -> None:
        one, many, said = shapes

        def single(body: one) -> Any:  # type: ignore[valid-type]
            metrics.answered(1)
            return answer(holder.current.model, body)

        def batch(body: many) -> Any:  # type: ignore[valid-type]
            model, requests = holder.current.model, body.requests  # type: ignore[attr-defined]
            metrics.answered(len(requests))
            return [_or_why_not(answer, model, each) for each in requests]

        single.__name__, batch.__name__ = name, f"{name}_batch"
        app.post(f"/v1/{name}", response_model=said, responses=_PROBLEMS)(single)
        app.post(f"/v1/{name}/batch", response_model=list[Answers], responses=_PROBLEMS)(batch)

    add("recommend", recommended, (asked.recommend, asked.recommend_batch, Recommendations))
    add("predict", predicted, (asked.predict, asked.predict_batch, Predictions))


def _or_why_not(answer: Callable[..., dict[str, Any]], model: Any, asked: Any) -> dict[str, Any]:
    """Answer one of a batch; what is wrong with it is not the others' fault."""
    try:
        return answer(model, asked)
    except TacitError as error:
        return {"detail": str(error)}


def _add_facts(app: FastAPI, holder: Holder, metrics: Metrics, limits: Limits) -> None:
    """Add what is the same for everyone: certificate, items, health, counts."""

    @app.get("/v1/certificate", responses=_REFUSED)
    def certificate() -> dict[str, Any]:
        model = holder.current.model
        checked, said = model.verify(), model.certificate
        verified = {"holds": checked.holds, "problems": list(checked.problems)}
        return {"certificate": said.to_json(), "text": said.text(), "verified": verified}

    @app.get("/v1/items", response_model=Items, responses=_REFUSED)
    def items(
        search: Annotated[str, Query(max_length=200)] = "",
        offset: Annotated[int, Query(ge=0, le=2**53)] = 0,
        limit: Annotated[int, Query(ge=1, le=limits.items)] = min(100, limits.items),
    ) -> Any:
        return items_page(holder.current.model, search, offset, limit)

    @app.get("/health", response_model=State)
    async def health() -> Any:
        model = holder.current.model
        return {
            "status": "ok",
            "rule": model.rule.kind,
            "items": len(model.catalogue),
            "rating_range": list(model.rating_range),
            "implicit": model.implicit,
            "private": model.private,
            "digest": model.digest,
        }

    @app.get("/metrics", response_class=PlainTextResponse, responses={401: _PROBLEMS[401]})
    async def counts() -> PlainTextResponse:
        model = holder.current.model
        text = metrics.text(model.rule.kind, len(model.catalogue))
        return PlainTextResponse(text, media_type="text/plain; version=0.0.4; charset=utf-8")


def _add_page(app: FastAPI, holder: Holder) -> None:
    """Add the files of the page, and the model file."""

    def add(path: str, name: str) -> None:
        @app.api_route(path, methods=["GET", "HEAD"], include_in_schema=False)
        async def file(request: Request) -> Response:
            found = holder.current.files[name]
            headers = {"etag": found.tag, "cache-control": "no-cache"}
            if request.headers.get("if-none-match") == found.tag:
                return Response(status_code=304, headers=headers)
            return Response(found.content, media_type=found.type, headers=headers)

    for name in holder.current.files:
        add(f"/{name}", name)
    add("/", "index.html")


def _add_refusals(app: FastAPI) -> None:
    """Add answers to what cannot be done; none of them repeats a rating."""

    @app.exception_handler(TacitError)
    async def refused(_: Request, error: TacitError) -> JSONResponse:
        return JSONResponse({"detail": str(error)}, 422)

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        if first["type"] == "json_invalid":
            return JSONResponse({"detail": "the body is not JSON"}, 422)
        if first["loc"] == ("body",):
            return JSONResponse({"detail": _NO_OBJECT}, 422)
        where = ".".join(str(part) for part in first["loc"][:2])
        if first["type"] == "extra_forbidden":
            return JSONResponse({"detail": f"{where}: no such field; see /openapi.json"}, 422)
        return JSONResponse({"detail": f"{where}: {first['msg']}"}, 422)
