"""Releases as values: their names, their way through certificates, and files of older versions."""

import ast
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import tacit
from tacit.accounting.certificate import Certificate, Method
from tacit.accounting.ledger import Ledger
from tacit.accounting.old_certificate import release_of_name
from tacit.accounting.release import Release, ReleaseKind
from tacit.algorithms import ALGORITHMS, IMPLICIT_ALGORITHMS
from tacit.audit.target import target_of_model
from tests.conftest import named, ratings_for

OLD = Path(__file__).parent / "old_models"
SOURCES = Path(tacit.__file__).parent
BOUND = tacit.accounting.budget.Sensitivity(add_remove=1.0, replace=2.0)
EXAMPLES = [
    Release(ReleaseKind.ITEM_SUMS),
    Release(ReleaseKind.COVARIANCE, (3,)),
    Release(ReleaseKind.PRODUCT, (2, 1)),
    Release(ReleaseKind.EQUATIONS, (1,), part=(2,)),
    Release(ReleaseKind.CO_OCCURRENCE_PRODUCT, (1,), part=(1, 7)),
    named("round <1> of mine"),
    Release(ReleaseKind.OTHER, (4,), (3,), label="mine"),
]
NAMES = [
    "item sums", "covariance 3", "product 2.1", "candidate 2: equations 1",
    "candidate 1: candidate 7: co-occurrence product 1", "round <1> of mine", "candidate 3: mine 4",
]  # fmt: skip


def test_names_are_made_from_releases() -> None:
    assert [release.name for release in EXAMPLES] == NAMES


@pytest.mark.parametrize("release", EXAMPLES, ids=NAMES)
def test_a_release_survives_json(release: Release) -> None:
    assert Release.from_json(json.loads(json.dumps(release.to_json()))) == release


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "covariances"}, {"kind": []}, {"kind": "other"}, {"index": [-1]},
        {"index": [1.5]}, {"index": [True]}, {"index": ["1"]}, {"index": list(range(9))},
        {"part": [2**53]}, {"part": None}, {"label": "x"}, {"name": "covariance 2"},
    ],
    ids=str,
)  # fmt: skip
def test_an_unsound_release_in_a_certificate_is_a_model_file_error(change: dict[str, Any]) -> None:
    certificate = small_certificate().to_json()
    certificate["releases"][0] |= change
    with pytest.raises(tacit.ModelFileError):
        Certificate.from_json(certificate)


def small_certificate() -> Certificate:
    ledger = Ledger(tacit.PrivacyBudget(1.0))
    release = Release(ReleaseKind.COVARIANCE, (1,))
    ledger.reserve(release, BOUND, 1.0)
    ledger.spend(release, BOUND)
    return Certificate.of(ledger, {}, "exact", ())


@pytest.mark.parametrize("name", ["index", "part"])
def test_an_index_is_a_short_tuple_of_numbers_to_count_with(name: str) -> None:
    for numbers in ((), (0,), (2**53 - 1,), tuple(range(8))):
        assert getattr(Release(ReleaseKind.PRODUCT, **{name: numbers}), name) == numbers
    for wrong in ((-1,), (2**53,), tuple(range(9)), (True,), (1.0,), [1], (1, "2"), None):
        with pytest.raises(tacit.ConfigError, match=name):
            Release(ReleaseKind.PRODUCT, **{name: wrong})  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", ["covariance 1", ReleaseKind.COVARIANCE, None])
def test_the_ledger_takes_releases_only(wrong: Any) -> None:
    with pytest.raises(tacit.ConfigError, match=r"Release\(ReleaseKind"):
        Ledger(tacit.PrivacyBudget(1.0)).reserve(wrong, BOUND, 1.0)


@pytest.mark.parametrize("kind", ReleaseKind)
def test_a_label_is_for_other_kinds_and_only_for_them(kind: ReleaseKind) -> None:
    other = kind is ReleaseKind.OTHER
    with pytest.raises(tacit.ConfigError, match="label"):
        Release(kind, label="" if other else "x")


def test_releases_that_are_alike_share_a_line_and_others_do_not() -> None:
    """Two names with one word in common are not a run, though their costs are the same."""
    ledger = Ledger(tacit.PrivacyBudget(1.0))
    kinds = [Release(ReleaseKind.ITEM_SUMS), Release(ReleaseKind.ITEM_WEIGHTS)]
    rounds = [Release(ReleaseKind.COVARIANCE, (turn,)) for turn in (1, 2, 3)]
    for release in (*kinds, *rounds):
        ledger.reserve(release, BOUND, 0.2)
        ledger.spend(release, BOUND)
    text = Certificate.of(ledger, {}, "exact", ()).text()
    for line in ("item sums: ", "item weights: ", "covariance 1 to 3: "):
        assert f"    {line}" in text


def test_a_model_is_not_paid_for_by_the_trial_of_a_candidate() -> None:
    model = tacit.fit(ratings_for(1), tacit.SVD(rank=2, count_share=0.0), epsilon=1.0)
    assert model.verify().holds
    (entry,) = model.certificate.releases
    trial = replace(entry, release=replace(entry.release, part=(1,)))
    forged = replace(model, certificate=replace(model.certificate, releases=(trial,)))
    assert "it has more parts than releases named 'covariance'" in forged.verify().problems


def test_verify_cannot_see_where_the_numbers_of_a_model_come_from() -> None:
    """What it does not check, and what docs/privacy.md says it does not: a limit of any file."""
    ratings, config = ratings_for(1), tacit.SVD(rank=2)
    model, exact = tacit.fit(ratings, config, epsilon=1.0), tacit.fit(ratings, config, budget=None)
    assert replace(model, rule=exact.rule).verify().holds


@pytest.mark.parametrize("name", [*ALGORITHMS, *IMPLICIT_ALGORITHMS])
def test_a_certificate_carries_the_algorithm_and_its_settings(name: str) -> None:
    """Also those that a rule decides, which stay None, and tuples, which JSON turns to lists."""
    config: Any = (ALGORITHMS | IMPLICIT_ALGORITHMS)[name]()
    if name == "frank-wolfe":
        config = replace(config, rounds=3, schedule=(1.0, 2.0), row_norm="private")
    method = Method.of(config)
    again = Method.from_json(*json.loads(json.dumps([method.name, dict(method.settings)])))
    assert again == method
    assert type(config)(**again.settings) == config


@pytest.mark.parametrize(
    "change",
    [
        {"algorithm": 7}, {"settings": None}, {"settings": []}, {"settings": {"rank": {}}},
        {"settings": {"rank": [[1]]}}, {"settings": {"rank": math.nan}},
    ],
    ids=str,
)  # fmt: skip
def test_unsound_settings_are_a_model_file_error(change: dict[str, Any]) -> None:
    content = tacit.fit(ratings_for(1), tacit.SVD(), epsilon=1.0).certificate.to_json()
    with pytest.raises(tacit.ModelFileError):
        Certificate.from_json(content | change)


def test_what_is_public_and_comes_from_a_release_names_it() -> None:
    config = tacit.FrankWolfe(rounds=3, row_norm="private")
    certificate = tacit.fit(ratings_for(1), config, epsilon=1.0, top_items=9).certificate
    assert certificate.sources == {
        "catalogue": Release(ReleaseKind.ITEM_COUNTS),
        "frank-wolfe row_norm": Release(ReleaseKind.ROW_NORMS),
    }
    for missing in certificate.sources.values():
        left = tuple(e for e in certificate.releases if e.release != missing)
        assert f"{missing.name!r} that is not listed" in str(
            replace(certificate, releases=left).verify()
        )


def test_the_text_is_not_read_back() -> None:
    """The words of a line do not matter any more: only what the certificate carries as a value."""
    certificate = tacit.fit(ratings_for(1), tacit.SVD(), epsilon=1.0).certificate
    worded = replace(certificate, public={"x": "by the release 'nothing at all'"})
    assert worded.verify().holds
    assert Certificate.from_json(worded.to_json()).verify().holds


def test_no_release_is_told_by_its_text() -> None:
    """In the source, names of kinds stand where the kinds are defined, and nowhere else."""
    stems = {kind.value for kind in ReleaseKind if " " in kind or "-" in kind}
    for path in sorted(SOURCES.rglob("*.py")):
        source = path.read_text()
        if path.name == "release.py" or not any(stem in source for stem in stems):
            continue
        nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant)]
        assert not stems & {node.value for node in nodes if isinstance(node.value, str)}, path


class TestOlderFiles:
    """Files that were written before releases had kinds."""

    @pytest.mark.parametrize("path", sorted(OLD.iterdir()), ids=lambda path: path.stem)
    def test_they_load_as_before(self, path: Path) -> None:
        """They were fitted with a seed, so that is the one problem that `verify` may find."""
        model = tacit.load(path)
        assert all(e.release.kind is not ReleaseKind.OTHER for e in model.certificate.releases)
        assert model.certificate.method is None
        (problem,) = model.verify().problems
        assert "seed" in problem
        assert model.explain()

    def test_what_lines_come_from_is_known_too(self) -> None:
        certificate = tacit.load(OLD / "frank-wolfe.tacit").certificate
        assert set(certificate.sources) == {"catalogue", "frank-wolfe row_norm"}
        assert not replace(certificate, releases=certificate.releases[1:]).verify().holds
        tuned = tacit.load(OLD / "tuned.tacit").certificate
        assert tuned.sources["chosen candidate"] == Release(ReleaseKind.HELD_OUT_LOSSES)
        assert {entry.release.part for entry in tuned.releases} == {(), (1,), (2,)}

    def test_they_can_be_saved_again_and_are_then_new(self, tmp_path: Path) -> None:
        model = tacit.load(OLD / "oja.tacit")
        model.save(tmp_path / "again.tacit")
        again = tacit.load(tmp_path / "again.tacit")
        assert again.certificate == model.certificate

    @pytest.mark.parametrize("name", ["frank-wolfe", "als", "tuned"])
    def test_an_audit_asks_for_their_settings(self, name: str) -> None:
        with pytest.raises(tacit.ConfigError, match="one of an older version none"):
            target_of_model(tacit.load(OLD / f"{name}.tacit"))

    def test_how_many_users_there_were_is_read_off_the_text(self) -> None:
        assert tacit.load(OLD / "frank-wolfe.tacit").certificate.users == 300

    @pytest.mark.parametrize("release", EXAMPLES[:5], ids=NAMES[:5])
    def test_every_old_name_has_its_kind(self, release: Release) -> None:
        assert release_of_name(release.name) == release

    @pytest.mark.parametrize(
        "name",
        ["", "other", "other 1", "round 3", "item  sums", "item sums\n", "covariance 01",
         "covariance ٣", "candidate 1:covariance 1", "covariance 99999999999", "x" * 10**6],
        ids=lambda name: name[:20],
    )  # fmt: skip
    def test_a_name_that_nobody_knows_is_of_another_kind(self, name: str) -> None:
        if not name:
            with pytest.raises(tacit.ConfigError, match="label"):
                release_of_name(name)
            return
        found = release_of_name(name)
        assert (found.kind, found.label) == (ReleaseKind.OTHER, name)
