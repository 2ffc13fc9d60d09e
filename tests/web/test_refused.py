"""tacit.js refuses what is not a valid model, and says why; so does Python, of the same files."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save

import tacit
from tacit.models.digest import BLANK, sealed
from tests.conftest import ratings_for
from tests.support.sealing import resealed
from tests.web.node import answers, needs_node

pytestmark = needs_node

OLD = Path(__file__).parents[1] / "old_models"


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sound") / "model.tacit"
    tacit.fit(ratings_for(0), tacit.Moments(), epsilon=4.0, delta=1e-4).save(path)
    return path


def facts_of(content: bytes) -> dict[str, Any]:
    size = int.from_bytes(content[:8], "little")
    return dict(json.loads(json.loads(content[8 : 8 + size])["__metadata__"]["tacit"]))


def remade(path: Path, changes: dict[str, Any], arrays: dict[str, Any]) -> bytes:
    """A file with other facts or arrays, and a digest that is right."""
    content = path.read_bytes()
    facts = facts_of(content) | {"digest": BLANK} | changes
    return sealed(save(load_file(path) | arrays, {"tacit": json.dumps(facts)}))


def damaged(path: Path) -> dict[str, bytes]:
    content = path.read_bytes()
    size = int.from_bytes(content[:8], "little")
    tensors = load_file(path)
    factors, offsets = tensors["rule.factors"], tensors["rule.offsets"]
    facts = facts_of(content)
    return {
        "empty": b"",
        "a few bytes": b"tea",
        "no model at all": b"<!doctype html><html>" * 40,
        "cut off": content[:-9],
        "cut off in the header": content[: size // 2],
        "one bit of an array": content[:-20] + bytes([content[-20] ^ 4]) + content[-19:],
        "one bit of the certificate": content.replace(b"epsilon", b"epsilom", 1),
        "longer": content + b"\0" * 8,
        "a header of four gigabytes": (2**32).to_bytes(8, "little") + content[8:],
        "a newer format": resealed(content.replace(b"tacit-model/2", b"tacit-model/9")),
        "no digest": resealed(content.replace(b"digest", b"digess", 1)),
        "an unknown rule": remade(path, {"rule": {"kind": "magic", "settings": {}}}, {}),
        "a rule of JavaScript": remade(path, {"rule": {"kind": "__proto__", "settings": {}}}, {}),
        "an impossible range": remade(path, {"rating_range": [5, 5]}, {}),
        "not a number": remade(path, {}, {"rule.factors": factors * np.nan}),
        "other shapes": remade(path, {}, {"rule.offsets": offsets[:-1].copy()}),
        "single precision": remade(path, {}, {"rule.offsets": offsets.astype(np.float32)}),
        "no noise": remade(path, {}, {"rule.noise": 0 * tensors["rule.noise"]}),
        "texts that end too late": remade(path, {}, {"items.ends": tensors["items.ends"] + 1}),
        "an item twice": remade(path, {}, {"items.text": 0 * tensors["items.text"] + 65}),
        "a contradiction": remade(
            path, {"certificate": facts["certificate"] | {"private": False}}, {}
        ),
    }


def test_damaged_files_are_refused(file: Path, tmp_path: Path) -> None:
    cases = damaged(file)
    jobs = []
    for at, content in enumerate(cases.values()):
        path = tmp_path / f"{at}.tacit"
        path.write_bytes(content)
        jobs.append({"file": str(path), "questions": []})
        with pytest.raises(tacit.errors.ModelFileError):
            tacit.load(path)
    said = answers(tmp_path, [*jobs, {"file": str(file), "questions": []}])
    for name, told in zip(cases, said, strict=False):
        assert told.get("error") == "ModelFileError", name
        assert told["message"].startswith("not a valid model file: "), name
    assert "error" not in said[-1]  # the twin: what is sound is read
    told = dict(zip(cases, said, strict=False))
    assert "get it again" in told["one bit of an array"]["message"]
    assert "newer" in told["a newer format"]["message"]


def test_maps_of_the_first_version_are_read(tmp_path: Path) -> None:
    """Version 0.1.0 had whole matrices for projected gradient; no such file is in the tests."""
    path = tmp_path / "new.tacit"
    model = tacit.fit(ratings_for(0), tacit.ProjectedGradient(rounds=2), epsilon=4.0, delta=1e-4)
    model.save(path)
    items, rng = len(model.catalogue), np.random.default_rng(3)
    halves = rng.normal(size=(2, items, items)) / items
    maps = np.ascontiguousarray(halves + halves.transpose(0, 2, 1))
    facts = facts_of(path.read_bytes())
    facts["rule"]["settings"] = {"row_norm": 2.0, "max_ratings": None, "centre": True}
    kept = {
        name: array
        for name, array in load_file(path).items()
        if name not in {"rule.vectors", "rule.shrinkage", "rule.norms"}
    }
    facts["digest"] = BLANK
    arrays = kept | {"rule.maps": maps}
    old = tmp_path / "old.tacit"
    old.write_bytes(sealed(save(arrays, {"tacit": json.dumps(facts)})))
    own = [[item, 4.5] for item in model.catalogue.ids.to_list()[:4]]
    [said] = answers(tmp_path, [{"file": str(old), "questions": [{"own": own, "unknown": "x"}]}])
    wanted = tacit.load(old).predict(dict(map(tuple, own)), clip=False)
    np.testing.assert_allclose(said["answers"][0]["unclipped"], wanted, rtol=1e-5)


def test_ids_titles_and_numbers_of_every_kind_are_read(tmp_path: Path) -> None:
    base = tacit.load(OLD / "moments.tacit")
    count = len(base.catalogue)
    texts = [f"тест-{at} 🎬 é" for at in range(count)]
    numbers = np.arange(count, dtype=np.uint64) + np.uint64(2**63)
    catalogues = [
        tacit.Catalogue(texts, titles=[f"<b>{at}</b> ﻿" for at in range(count)]),
        tacit.Catalogue(numbers),
        tacit.Catalogue([at - 5 for at in range(count)]),
    ]
    jobs = []
    for at, catalogue in enumerate(catalogues):
        path = tmp_path / f"{at}.tacit"
        tacit.Model(base.rule, catalogue, base.rating_range, base.certificate, base.releases).save(
            path
        )
        questions = [{"own": [[str(catalogue.ids[2]), base.rating_range[1]]], "unknown": "no"}]
        jobs.append({"file": str(path), "questions": questions})
    for catalogue, job, said in zip(catalogues, jobs, answers(tmp_path, jobs), strict=True):
        ids = catalogue.ids.to_list()
        assert [str(each) for each in said["about"]["ids"]] == [str(each) for each in ids]
        assert said["about"]["titles"] == [catalogue.title(at) for at in range(count)]
        own = {ids[2]: base.rating_range[1]}
        wanted = tacit.load(job["file"]).predict(own, clip=False)
        np.testing.assert_allclose(said["answers"][0]["unclipped"], wanted, rtol=1e-5)


def test_forms_of_own_ratings_and_what_is_refused_of_them(file: Path) -> None:
    script = Path(__file__).with_name("own_ratings.mjs")
    node = shutil.which("node") or "node"
    done = subprocess.run(
        [node, str(script), str(file), str(OLD / "interactions.tacit")],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "all as it should be" in done.stdout
