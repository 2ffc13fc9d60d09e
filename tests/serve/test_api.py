"""The server as a caller sees it: answers, limits, reload, and what it does not keep."""

import asyncio
import json
import logging
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tacit.errors import ConfigError, ModelFileError
from tests.serve.models import latent_model, save_latent, touched_model

pytest.importorskip("fastapi")
pytest.importorskip("httpx2")
from starlette.testclient import TestClient

from tacit.serve.app import create_app
from tacit.serve.limits import Limits
from tacit.serve.running import read_token

pytestmark = pytest.mark.extras

SMALL = Limits(body=2000, ratings=20, people=3, items=15, at_once=1, seconds=0.5)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_latent(tmp_path_factory.mktemp("serve"))


@pytest.fixture(scope="module")
def client(path: Path) -> Iterator[TestClient]:
    with TestClient(create_app(path)) as client:
        yield client


def ids() -> list[Any]:
    return list(latent_model().catalogue.ids.to_list())


def test_a_list_is_the_models(client: TestClient) -> None:
    own = {ids()[0]: 5.0, ids()[3]: 1.0}
    asked = {"ratings": own | {"no such": 3}, "n": 4, "because": True, "std": True}
    said = client.post("/v1/recommend", json=asked).json()
    assert said["unknown"] == 1
    wanted = latent_model().recommend(own, 4, because=True)
    for row, twin in zip(said["recommendations"], wanted, strict=True):
        assert (row["item"], row["title"]) == (twin.item, twin.title)
        assert row["score"] == pytest.approx(twin.score)
        assert row["choice"] == pytest.approx(twin.choice)
        assert row["because"][0]["item"] == twin.because[0].item  # type: ignore[index]
        assert 0 < row["std"] < 5


@pytest.mark.parametrize("more", [{"by": "rating"}, {"by": "choice"}, {"include_rated": True}])
def test_lists_of_other_orders(client: TestClient, more: dict[str, Any]) -> None:
    own = {ids()[0]: 5.0}
    said = client.post("/v1/recommend", json={"ratings": own, "n": 5, **more}).json()
    wanted = latent_model().recommend(own, 5, **more)
    assert [row["item"] for row in said["recommendations"]] == [row.item for row in wanted]


LOOPS = """
import gc, sys
from pathlib import Path
from numba.core.dispatcher import Dispatcher
from starlette.testclient import TestClient
from tacit.serve.app import create_app

def loops():
    return sum(len(each.overloads) for each in gc.get_objects() if isinstance(each, Dispatcher))

client = TestClient(create_app(Path(sys.argv[1])))
ready = loops()
item = client.get("/v1/items").json()["items"][0]["item"]
own = {"touched": [item]} if sys.argv[2] == "touched" else {"ratings": {item: 4}}
for asked in ({}, own, own | {"because": True, "std": "ratings" in own, "n": 3}):
    assert client.post("/v1/recommend", json=asked).status_code == 200
for asked in (own, own | {"std": "ratings" in own}):
    assert client.post("/v1/predict", json=asked).status_code == 200
print(ready, loops())
"""


@pytest.mark.parametrize("kind", ["ratings", "touched"])
def test_no_caller_waits_until_loops_are_compiled(path: Path, tmp_path: Path, kind: str) -> None:
    if kind == "touched":
        path = tmp_path / "touched.tacit"
        touched_model().save(path)
    done = subprocess.run(
        [sys.executable, "-c", LOOPS, path, kind], capture_output=True, text=True, check=True
    )
    ready, after = done.stdout.split()
    assert ready == after != "0"


def test_candidates_and_exclude(client: TestClient) -> None:
    some = ids()[4:9]
    asked = {"candidates": some, "exclude": some[:1]}
    said = client.post("/v1/recommend", json=asked).json()
    assert {row["item"] for row in said["recommendations"]} == set(some[1:])


def test_predictions_are_the_models(client: TestClient) -> None:
    own, wanted = {ids()[0]: 5.0}, [ids()[2], "no such", ids()[1]]
    said = client.post("/v1/predict", json={"ratings": own, "items": wanted, "std": True}).json()
    scores, stds = latent_model().predict(own, return_std=True)
    assert said["items"] == wanted
    assert said["scores"] == [pytest.approx(scores[2]), None, pytest.approx(scores[1])]
    assert said["stds"] == [pytest.approx(stds[2]), None, pytest.approx(stds[1])]
    everything = client.post("/v1/predict", json={"ratings": own}).json()
    assert everything["items"] == ids()


def test_batches_answer_everyone_and_say_who_was_refused(client: TestClient) -> None:
    people = [{"ratings": {ids()[0]: 5.0}}, {"ratings": {ids()[0]: 99.0}}, {}]
    said = client.post("/v1/recommend/batch", json={"requests": people}).json()
    assert [bool(each["recommendations"]) for each in said] == [True, False, True]
    assert "outside the rating range" in said[1]["detail"]
    said = client.post("/v1/predict/batch", json={"requests": people[:1]}).json()
    assert len(said[0]["scores"]) == len(ids())


def test_interactions_are_touched_and_not_rated(tmp_path: Path) -> None:
    touched_model().save(tmp_path / "m.tacit")
    with TestClient(create_app(tmp_path / "m.tacit")) as client:
        said = client.post("/v1/recommend", json={"touched": [3, "4"], "n": 3}).json()
        wanted = touched_model().recommend([3, 4], 3)
        assert [row["item"] for row in said["recommendations"]] == [row.item for row in wanted]
        assert client.post("/v1/recommend", json={"ratings": {"3": 1}}).status_code == 422
        assert client.post("/v1/recommend", json={"by": "rating"}).status_code == 422


def test_facts(client: TestClient) -> None:
    said = client.get("/v1/certificate").json()
    assert said["certificate"] == json.loads(json.dumps(latent_model().certificate.to_json()))
    assert "epsilon" in said["text"].lower()
    page = client.get("/v1/items", params={"search": "no. 1", "limit": 3, "offset": 1}).json()
    assert page["total"] == 11
    assert [item["title"] for item in page["items"]] == [f"Film No. {at}" for at in (10, 11, 12)]
    health = client.get("/health").json()
    assert (health["status"], health["items"]) == ("ok", 25)
    assert "/v1/recommend" in client.get("/openapi.json").json()["paths"]


def test_the_page_and_its_policy(client: TestClient, path: Path) -> None:
    page = client.get("/")
    assert "connect-src 'none'" in page.headers["content-security-policy"]
    assert page.headers["x-content-type-options"] == "nosniff"
    assert client.get("/model.tacit").content == path.read_bytes()
    tag = client.get("/model.js").headers["etag"]
    again = client.get("/model.js", headers={"if-none-match": tag})
    assert again.status_code == 304
    assert client.head("/").status_code == 200
    assert client.get("/../pyproject.toml").status_code == 404
    assert "access-control-allow-origin" not in page.headers


def test_without_the_page_there_is_the_api_alone(path: Path) -> None:
    with TestClient(create_app(path, page=False)) as client:
        assert client.get("/").status_code == client.get("/model.tacit").status_code == 404
        assert client.post("/v1/recommend", json={}).status_code == 200


@pytest.mark.parametrize(
    "body",
    [
        {"ratings": {"film-01": 99}},
        {"ratings": {"film-01": "5"}},
        {"ratings": {"film-01": None}},
        {"ratings": {"": 3}},
        {"ratings": [["film-01", 5]]},
        {"ratings": {f"film-{at:02d}": 3 for at in range(21)}},
        {"n": 0},
        {"n": 16},
        {"n": True},
        {"by": "fame"},
        {"touched": ["film-01"]},
        {"candidates": ["no such item"]},
        {"candidates": []},
        {"other": 1},
        [],
    ],
)
def test_what_cannot_be_answered_is_a_422_that_repeats_no_rating(path: Path, body: Any) -> None:
    with TestClient(create_app(path, limits=SMALL)) as client:
        said = client.post("/v1/recommend", json=body)
    assert said.status_code == 422
    assert isinstance(said.json()["detail"], str)
    assert "99" not in said.text


def test_a_field_that_there_is_not_is_named(client: TestClient) -> None:
    said = client.post("/v1/recommend", json={"rating": {"film-01": 5}})
    assert said.json()["detail"] == "body.rating: no such field; see /openapi.json"


@pytest.mark.parametrize("sent", [{"content": b'{"ratings": {}}'}, {"json": []}, {"json": 3}])
def test_a_body_that_is_no_object_is_told_the_header_too(
    client: TestClient, sent: dict[str, Any]
) -> None:
    said = client.post("/v1/recommend", **sent)
    assert said.status_code == 422
    assert "expected a JSON object" in said.json()["detail"]
    assert "content-type: application/json" in said.json()["detail"]


def test_bodies_and_batches_have_limits(path: Path) -> None:
    with TestClient(create_app(path, limits=SMALL)) as client:
        assert client.post("/v1/recommend", content=b"{" * 2001).status_code == 413
        assert client.post("/v1/recommend", content=iter([b" " * 1500] * 2)).status_code == 413
        assert client.post("/v1/recommend", content=b"{").status_code == 422
        people = {"requests": [{}] * 4}
        assert client.post("/v1/recommend/batch", json=people).status_code == 422
        assert client.get("/v1/items", params={"limit": 16}).status_code == 422
        assert client.post("/v1/recommend", json={}).status_code == 200  # and it goes on


def test_too_many_at_once_are_told_to_come_again(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entered, leave = threading.Event(), threading.Event()

    def slowly(*_: Any) -> dict[str, Any]:
        entered.set()
        leave.wait(10)
        return {"recommendations": [], "unknown": 0}

    monkeypatch.setattr("tacit.serve.app.recommended", slowly)
    with TestClient(create_app(path, limits=SMALL)) as client:
        found: list[int] = []
        first = threading.Thread(
            target=lambda: found.append(client.post("/v1/recommend", json={}).status_code)
        )
        first.start()
        assert entered.wait(10)
        second = client.post("/v1/predict", json={})
        assert (second.status_code, second.headers["retry-after"]) == (429, "1")
        assert client.get("/health").status_code == 200
        leave.set()
        first.join()
        assert found == [200]
        assert client.post("/v1/predict", json={}).status_code == 200


def test_a_token_guards_the_api_and_not_what_is_published(path: Path, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("a-long-enough-secret\n")
    token = read_token(tmp_path / "token")
    with TestClient(create_app(path, token=token)) as client:
        for bad in ({}, {"authorization": "Bearer wrong"}, {"authorization": token}):
            said = client.post("/v1/recommend", json={}, headers=bad)
            assert (said.status_code, said.headers["www-authenticate"]) == (401, "Bearer")
        assert client.get("/metrics").status_code == 401
        right = {"authorization": f"Bearer {token}"}
        assert client.post("/v1/recommend", json={}, headers=right).status_code == 200
        assert client.get("/").status_code == client.get("/health").status_code == 200


@pytest.mark.parametrize("text", ["", "short", "with a space in it, and long", "é" * 20])
def test_a_token_that_is_none_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "token").write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match="token-file"):
        read_token(tmp_path / "token")


def test_nothing_of_a_request_is_logged_or_counted_but_its_number(
    path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    marker = "film-07"
    with TestClient(create_app(path)) as client:
        client.post("/v1/recommend", json={"ratings": {marker: 4.5, "unheard-of": 2.5}})
        client.post("/v1/recommend", json={"ratings": {marker: 99.25}})
        client.post("/v1/recommend/batch", json={"requests": [{}, {}]})
        client.get(f"/v1/items?search={marker}")
        client.get(f"/{marker}")
        counts = client.get("/metrics").text
    logged = [each.getMessage() for each in caplog.records if not each.name.startswith("httpx")]
    seen = counts + "\n".join(logged) + "".join(capfd.readouterr())
    for word in (marker, "unheard-of", "4.5", "99.25"):
        assert word not in seen.replace("le=", "")
    assert 'tacit_requests_total{route="/v1/recommend",status="200"} 1' in counts
    assert 'tacit_requests_total{route="other",status="404"} 1' in counts
    assert "tacit_people_total 4" in counts


def test_an_error_inside_is_a_bare_500(
    path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def broken(_: Any, asked: Any) -> None:
        raise RuntimeError(f"what she sent: {asked.ratings}")

    monkeypatch.setattr("tacit.serve.app.recommended", broken)
    with TestClient(create_app(path)) as client:
        said = client.post("/v1/recommend", json={"ratings": {"film-01": 4.75}})
        assert said.status_code == 500
        assert "4.75" not in said.text + "".join(capfd.readouterr())
        assert client.get("/health").status_code == 200


def test_a_newer_model_is_taken_over_and_requests_go_on(tmp_path: Path) -> None:
    path = save_latent(tmp_path)
    with TestClient(create_app(path, watch=False)) as client:
        holder = client.app._app.state.holder  # type: ignore[attr-defined]
        before = holder.current
        look = lambda: client.portal.call(holder.look)  # type: ignore[union-attr]  # noqa: E731
        look()
        assert holder.current is before
        latent_model(seed=3).save(path)
        look()
        assert holder.current is not before
        digest = client.get("/health").json()["digest"]
        assert client.get("/model.tacit").content == path.read_bytes()
        path.write_bytes(b"half a model")
        look()
        assert client.get("/health").json()["digest"] == digest
        path.unlink()
        look()
        assert client.post("/v1/recommend", json={}).status_code == 200
        counts = client.get("/metrics").text
    assert 'tacit_model_reloads_total{result="done"} 1' in counts
    assert 'tacit_model_reloads_total{result="refused"} 2' in counts


def test_no_request_is_dropped_while_models_are_exchanged(tmp_path: Path) -> None:
    """Four callers ask all the time, while the file is replaced again and again."""
    path, done, found = save_latent(tmp_path), threading.Event(), []
    with TestClient(create_app(path, watch=False)) as client:
        holder = client.app._app.state.holder  # type: ignore[attr-defined]

        def ask() -> None:
            while not done.is_set():
                found.append(client.post("/v1/recommend", json={"n": 3}).status_code)

        callers = [threading.Thread(target=ask) for _ in range(4)]
        for caller in callers:
            caller.start()
        for turn in range(6):
            latent_model(seed=2 + turn % 2).save(path)
            client.portal.call(holder.look)  # type: ignore[union-attr]
        done.set()
        for caller in callers:
            caller.join()
        counts = client.get("/metrics").text
    assert set(found) == {200}
    assert 'tacit_model_reloads_total{result="done"} 6' in counts


def test_a_body_that_does_not_come_is_not_waited_for(path: Path) -> None:
    app, sent = create_app(path, limits=SMALL, watch=False), []
    scope = {"type": "http", "method": "POST", "path": "/v1/recommend", "headers": []}

    async def never() -> Any:
        await asyncio.sleep(60)

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(app(scope, never, send))
    assert sent[0]["status"] == 408


def test_what_is_no_model_is_not_served(tmp_path: Path) -> None:
    (tmp_path / "bad.tacit").write_bytes(b"tea")
    with pytest.raises(ModelFileError):
        create_app(tmp_path / "bad.tacit")
