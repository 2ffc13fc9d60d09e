"""What every algorithm must do: one suite, and a line in CASES for each of them."""

import math
import re
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

import tacit
from tacit.accounting.ledger import Entry
from tacit.algorithms import Algorithm
from tacit.trusted import mechanism as mechanism_module
from tacit.trusted.journal import Journal
from tests.conftest import ratings_for, spy_on_sums
from tests.support.sealing import resealed

USERS, ITEMS, RATED = 600, 12, 7
RANGE = (0.5, 5.0)

# Few rounds and no shift of lambda: a budget of 10000, the largest, is then next to no noise.
FRANK_WOLFE = tacit.FrankWolfe(rounds=3, shift=False, residual_clip=1.0)
OJA = replace(FRANK_WOLFE, eigen="oja", oja_steps=4)
CASES: dict[str, Any] = {
    "latent factors": tacit.LatentFactors(step="gradient"),
    "latent factors, equations": tacit.LatentFactors(step="equations", rounds=1),
    "moments": tacit.Moments(),
    "moments, block": tacit.Moments(eigen="block", columns=4, steps=2),
    "moments, few ratings": tacit.Moments(max_ratings=5, rank=2),
    "frank-wolfe": FRANK_WOLFE,
    "frank-wolfe, ridge": replace(FRANK_WOLFE, local="ridge"),
    "frank-wolfe, usual steps": replace(FRANK_WOLFE, step="2/(t+2)"),
    "frank-wolfe, noise by rounds": replace(FRANK_WOLFE, schedule="completed"),
    "frank-wolfe, item means": replace(FRANK_WOLFE, item_means=0.2),
    "frank-wolfe, private norm": replace(FRANK_WOLFE, item_means=0.1, row_norm="private"),
    "oja, power": replace(OJA, oja_rate="power"),
    "oja, theory": replace(OJA, oja_rate="theory"),
    "oja, paper": replace(OJA, oja_rate="paper"),
    "oja, private norm": replace(OJA, row_norm="private"),
    "oja, ridge": replace(OJA, oja_rate="power", local="ridge"),
    "svd": tacit.SVD(rank=2),
    "svd, power": tacit.SVD(rank=2, eigen="power"),
    "svd, oja": tacit.SVD(rank=2, eigen="oja"),
    "svd, public count": tacit.SVD(rank=2, count_share=0.0, item_means=0.2),
    "svd, private norm": tacit.SVD(rank=2, row_norm="private"),
    "projected gradient": tacit.ProjectedGradient(rounds=3),
    "projected gradient, item means": tacit.ProjectedGradient(
        rounds=3, rate="t^-1/2", item_means=0.2
    ),
    "projected gradient, noise by rounds": tacit.ProjectedGradient(
        rounds=3, schedule="completed", filled_norm=4.0
    ),
    "cleansing, factors": tacit.Cleansing(rank=3),
    "projected gradient, own bound": tacit.ProjectedGradient(rounds=3, filled_norm=8.0),
    "cleansing, mm09": tacit.Cleansing(rank=3, cleaning="mm09", beta_diagonal=5.0),
    "cleansing, neighbours": tacit.Cleansing(rank=3, local="neighbours", nearest=4),
    "als": tacit.ALS(rank=3, rounds=2),
    "als, as published": tacit.ALS(rank=2, start_rank=2, rounds=3, pooling=False, frequent=0.0),
    "noisy gradient": tacit.NoisyGradient(rank=3, rounds=3),
    "noisy gradient, item means": tacit.NoisyGradient(rank=3, rounds=3, item_means=0.2),
}


@pytest.fixture(scope="module")
def many() -> tacit.Ratings:
    return ratings_for(0, users=USERS, items=ITEMS, per_user=RATED)


QUICK = {
    "latent factors", "latent factors, equations", "moments", "moments, block", "frank-wolfe",
    "frank-wolfe, private norm", "oja, power", "svd", "projected gradient", "cleansing, factors",
    "cleansing, neighbours", "als", "noisy gradient",
}  # fmt: skip
"""One of every algorithm and of every kind of release and local rule; the others count as slow."""


@pytest.fixture(
    params=[name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in CASES]
)
def config(request: pytest.FixtureRequest) -> Any:
    return CASES[request.param]


def scores_of(model: tacit.Model, ratings: tacit.Ratings) -> np.ndarray:
    return np.concatenate([block for _, block in model.predict_rows(ratings)])


def distance(one: np.ndarray, other: np.ndarray) -> float:
    return float(np.sqrt(np.mean((one - other) ** 2)))


def published(model: tacit.Model) -> dict[str, np.ndarray]:
    """Everything a model holds that was learned: its arrays, and the numbers beside them."""
    arrays, settings = model.rule.parts()
    numbers = {name: np.array(value) for name, value in settings.items() if value is not None}
    return arrays | numbers


def assert_identical(one: tacit.Model, other: tacit.Model) -> None:
    left, right = published(one), published(other)
    assert left.keys() == right.keys()
    assert [name for name in left if not np.array_equal(left[name], right[name])] == []


def own_row(ratings: tacit.Ratings, user: int) -> dict[str, float]:
    at = slice(ratings.indptr[user], ratings.indptr[user + 1])
    ids = ratings.catalogue.ids.to_list()
    items, values = ratings.items[at].tolist(), ratings.values[at].tolist()
    return {ids[item]: value for item, value in zip(items, values, strict=True)}


class Crash(BaseException):
    """Nothing in the package catches it."""


class TestEveryAlgorithm:
    """The contract."""

    def test_a_huge_budget_comes_to_the_form_without_noise(
        self, config: Algorithm, many: tacit.Ratings
    ) -> None:
        exact = scores_of(tacit.fit(many, config, budget=None), many)
        rich = scores_of(tacit.fit(many, config, epsilon=10_000.0, noise_seed_unsafe=1), many)
        poor = scores_of(tacit.fit(many, config, epsilon=0.01, noise_seed_unsafe=1), many)
        assert distance(exact, rich) < 0.05
        assert distance(exact, poor) > 0.3

    @pytest.mark.parametrize("relation", ["replace", "add_remove"])
    @pytest.mark.parametrize("epsilon", [0.3, 3.0])
    def test_the_whole_budget_is_spent_and_no_more(
        self, config: Algorithm, relation: str, epsilon: float
    ) -> None:
        model = tacit.fit(ratings_for(1), config, epsilon=epsilon, neighbours=relation)
        assert model.private
        assert model.certificate.exact_epsilon == pytest.approx(epsilon, rel=1e-6)
        assert model.certificate.exact_epsilon <= epsilon
        assert model.verify().holds, model.verify().problems

    @pytest.mark.parametrize("relation", ["replace", "add_remove"])
    def test_every_sum_is_in_the_ledger_with_its_sensitivity_and_noise(
        self, config: Algorithm, relation: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        asked = spy_on_sums(monkeypatch)
        drawn: list[int] = []
        draw = mechanism_module.floor_normals

        def counting(source: Any, size: int, bits: int) -> np.ndarray:
            drawn.append(size)
            return draw(source, size, bits)

        monkeypatch.setattr(mechanism_module, "floor_normals", counting)
        budget = tacit.PrivacyBudget(1.0, neighbours=relation)
        model = tacit.fit(ratings_for(1), config, budget=budget, noise_seed_unsafe=1)
        stated: list[Entry] = list(model.certificate.releases)
        found = [statistic.sensitivity.under(budget.neighbours) for statistic in asked]
        assert [entry.sensitivity for entry in stated] == found
        assert drawn == [math.prod(statistic.shape) for statistic in asked]
        assert all(entry.noise_sd > 0 for entry in stated)
        assert len({entry.name for entry in stated}) == len(stated)

    @pytest.mark.parametrize("relation", ["replace", "add_remove"])
    @pytest.mark.parametrize("epsilon", [1.0, 20.0])
    @pytest.mark.filterwarnings("ignore:epsilon=20")  # it is weak, or none to speak of
    def test_the_papers_accounting_never_gives_more_than_it_claims(
        self, config: Algorithm, relation: str, epsilon: float, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It holds, or it is refused before anything is summed."""
        asked = spy_on_sums(monkeypatch)
        budget = tacit.PrivacyBudget(epsilon, neighbours=relation, accounting="paper")
        try:
            model = tacit.fit(ratings_for(1), config, budget=budget)
        except tacit.BudgetExceeded:
            assert asked == []
        else:
            assert model.certificate.exact_epsilon <= epsilon
            assert not any("above the claim" in each for each in model.verify().problems)

    def test_releases_do_not_depend_on_threads_or_the_order_of_users(
        self, config: Algorithm, many: tacit.Ratings
    ) -> None:
        shuffled = many.take_rows(np.random.default_rng(0).permutation(many.n_users))
        few = replace(config, max_ratings=5)
        first, *others = (
            tacit.fit(
                ratings, few, epsilon=2.0, noise_seed_unsafe=1, engine=tacit.ThreadEngine(threads)
            )
            for ratings, threads in ((many, 1), (many, 2), (many, 7), (shuffled, 1), (shuffled, 3))
        )
        for other in others:
            assert_identical(first, other)

    def test_a_trained_user_and_a_newcomer_with_the_same_row_get_the_same(
        self, config: Algorithm
    ) -> None:
        ratings = ratings_for(2)
        model = tacit.fit(ratings, config, epsilon=5.0)
        trained = scores_of(model, ratings)
        newcomers = ratings.take_rows(np.array([7, 3]))
        for user in (0, 3, 7, 41):
            assert np.allclose(model.predict(own_row(ratings, user)), trained[user], atol=1e-9)
        assert np.allclose(scores_of(model, newcomers), trained[[7, 3]], atol=1e-9)

    def test_what_is_saved_is_loaded_and_names_nobody(
        self, config: Algorithm, tmp_path: Path
    ) -> None:
        ratings = ratings_for(2)
        model = tacit.fit(ratings, config, epsilon=5.0)
        model.save(tmp_path / "m.tacit")
        again = tacit.load(tmp_path / "m.tacit")
        assert np.array_equal(scores_of(again, ratings), scores_of(model, ratings))
        assert again.certificate.to_json() == model.certificate.to_json()
        assert again.verify().holds
        content = (tmp_path / "m.tacit").read_bytes()
        assert b"user-" not in content
        assert ratings.values.tobytes()[:64] not in content

    def test_damaged_files_are_model_file_errors(self, config: Algorithm, tmp_path: Path) -> None:
        path = tmp_path / "m.tacit"
        tacit.fit(ratings_for(2), config, epsilon=5.0).save(path)
        content = path.read_bytes()
        for length in (0, 7, 100, len(content) // 2, len(content) - 1):
            (tmp_path / "cut.tacit").write_bytes(content[:length])
            with pytest.raises(tacit.ModelFileError, match=r"cut\.tacit"):
                tacit.load(tmp_path / "cut.tacit")
        for what in mangled(path, tmp_path / "hurt.tacit"):
            # For what is in it: its digest is right.
            with pytest.raises(tacit.ModelFileError, match=r"hurt\.tacit(?!.*digest)"):
                pytest.fail(f"{what}: {tacit.load(tmp_path / 'hurt.tacit')!r}")

    def test_going_on_after_a_crash_is_bit_identical(
        self, config: Algorithm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        ratings = ratings_for(3)
        options: dict[str, Any] = {"epsilon": 3.0, "noise_seed_unsafe": 4}
        whole = tacit.fit(ratings, config, checkpoint=tmp_path / "whole", **options)
        write = Journal.write
        for survived in range(len(whole.certificate.releases)):
            folder = tmp_path / str(survived)

            def crashing(self: Journal, number: int, *rest: Any, most: int = survived) -> None:
                if number > most:
                    raise Crash
                write(self, number, *rest)

            with monkeypatch.context() as patch:
                patch.setattr(Journal, "write", crashing)
                with pytest.raises(Crash):
                    tacit.fit(ratings, config, checkpoint=folder, **options)
            assert len(releases(folder)) == survived
            resumed = tacit.fit(ratings, config, checkpoint=folder, **options)
            assert releases(folder) == releases(tmp_path / "whole")
            assert_identical(resumed, whole)
            assert resumed.certificate.to_json() == whole.certificate.to_json()

    def test_predictions_stay_in_the_range_whatever_a_person_has_rated(
        self, config: Algorithm
    ) -> None:
        ids = [f"film-{item:02d}" for item in range(15)]
        for epsilon in (0.01, 1.0, 1000.0):
            few = replace(config, max_ratings=4)
            model = tacit.fit(ratings_for(4), few, epsilon=epsilon, noise_seed_unsafe=1)
            for own in (
                {},
                {ids[3]: 5.0},
                {ids[3]: 2.75},
                dict.fromkeys(ids[:4], 0.5),
                dict(zip(ids, np.linspace(0.5, 5.0, 15), strict=True)),
                dict.fromkeys(ids, 5.0),
            ):
                scores = model.predict(own)
                assert scores.shape == (15,)
                assert np.isfinite(scores).all()
                assert scores.min() >= RANGE[0]
                assert scores.max() <= RANGE[1]
                assert len(model.recommend(own, n=3)) == min(3, 15 - len(own))

    def test_users_with_no_rating_one_rating_and_all_ratings_are_no_trouble(
        self, config: Algorithm
    ) -> None:
        catalogue = tacit.Catalogue(list("abcdefgh"), public=True)
        ratings = tacit.Ratings.from_arrays(
            [1, 2, *[3] * 8, 4, 4], ["other", "a", *"abcdefgh", "a", "h"],
            [3, 5, *range(1, 5), *range(1, 5), 1, 2], rating_range=(1, 5), catalogue=catalogue,
            unknown_items="drop",
        )  # fmt: skip
        assert ratings.n_users == 4
        assert np.diff(ratings.indptr).tolist() == [0, 1, 8, 2]
        for budget in (None, tacit.PrivacyBudget(0.01), tacit.PrivacyBudget(100.0)):
            model = tacit.fit(
                ratings, replace(config, max_ratings=3), budget=budget, noise_seed_unsafe=1
            )
            assert np.isfinite(scores_of(model, ratings)).all()
            assert np.isfinite(model.predict({})).all()

    def test_the_number_of_users_is_protected_under_add_remove(self, config: Algorithm) -> None:
        ratings = ratings_for(5, users=937)
        model = tacit.fit(ratings, config, epsilon=1.0, neighbours="add_remove")
        assert model.certificate.exact_epsilon == pytest.approx(1.0, rel=1e-6)
        assert [leaf for leaf in leaves(model.certificate.to_json()) if tells(leaf, 937)] == []
        assert [leaf for leaf in leaves(model.rule.parts()[1]) if tells(leaf, 937)] == []
        shown = tacit.fit(ratings, config, epsilon=1.0).certificate.to_json()
        assert [leaf for leaf in leaves(shown) if tells(leaf, 937)] != []

    def test_without_a_budget_it_says_not_private(self, config: Algorithm) -> None:
        model = tacit.fit(ratings_for(6), config, budget=None)
        assert not model.private
        assert not model.verify().holds
        assert "NOT PRIVATE" in model.certificate.text()
        assert "NOT PRIVATE" in repr(model)
        assert model.certificate.exact_epsilon == math.inf


def releases(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.glob("release-*"))}


def mangled(path: Path, target: Path) -> Iterator[str]:
    """Write files in which one array of the rule has another shape, or is not a number."""
    with safe_open(path, framework="numpy") as file:
        metadata = file.metadata()
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    for name, array in arrays.items():
        if not name.startswith("rule."):
            continue
        changes = {
            "its last row is gone": array[:-1],
            "a row comes twice": np.concatenate([array, array[:1]]),
            "it is flat": array.ravel(),
            "it has an axis more": array[None],
            "it is not a number": np.where(
                np.arange(array.size).reshape(array.shape), array, np.nan
            ),
        }
        if array.ndim > 1 and array.size:
            changes["it has an axis less"] = array[..., 0]
        for what, changed in changes.items():
            if changed.shape == array.shape and np.array_equal(changed, array):
                continue
            save_file(arrays | {name: np.ascontiguousarray(changed)}, target, metadata)
            target.write_bytes(resealed(target.read_bytes()))
            yield f"{name}: {what}"
        save_file({n: a for n, a in arrays.items() if n != name}, target, metadata)
        target.write_bytes(resealed(target.read_bytes()))
        yield f"{name}: it is gone"


def leaves(value: Any) -> Iterator[Any]:
    """Every number and text in a JSON value, names included."""
    if isinstance(value, dict):
        for name, part in value.items():
            yield name
            yield from leaves(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from leaves(part)
    else:
        yield value


def tells(leaf: Any, number: int) -> bool:
    """Whether a text or a number of a certificate is, or contains, this number."""
    if isinstance(leaf, str):
        return re.search(rf"(?<![\d.]){number}(?!\d|\.\d)", leaf) is not None
    return isinstance(leaf, int | float) and leaf == number


COMMON: list[tuple[str, Any]] = [
    ("max_ratings", 0), ("max_ratings", 2.5), ("max_ratings", "all"), ("max_ratings", True),
    ("sampling_seed", -1), ("sampling_seed", 2**63), ("sampling_seed", "today"),
]  # fmt: skip
PREPARED: list[tuple[str, Any]] = [
    *COMMON,
    ("row_norm", 0), ("row_norm", -1.0), ("row_norm", math.inf), ("row_norm", math.nan),
    ("row_norm", "long"), ("centre", 1), ("centre", "yes"), ("item_means", -0.1),
    ("item_means", 0.9), ("item_means", math.nan), ("item_means", "some"),
]  # fmt: skip
STARTED: list[tuple[str, Any]] = [("start_seed", -1), ("start_seed", 1.5), ("start_seed", "today")]
OJA_SETTINGS: list[tuple[str, Any]] = [
    ("oja_steps", 0), ("oja_steps", 10_001), ("oja_steps", 2.0), ("oja_rate", 0.0),
    ("oja_rate", -1.0), ("oja_rate", math.nan), ("oja_rate", "fast"), ("oja_rate", None),
    ("eigen", "qr"), ("eigen", None),
]  # fmt: skip
WRONG: dict[type, list[tuple[str, Any]]] = {
    tacit.Moments: [
        *COMMON, *STARTED,
        ("spread_share", 0.0), ("spread_share", 0.31), ("spread_share", math.nan),
        ("spread_share", "some"), ("weight_share", -0.1), ("weight_share", True),
        ("effect_share", 0.5), ("effect_share", None),
        ("rank", 0), ("rank", 1.5), ("rank", True), ("rank", "low"), ("eigen", "oja"),
        ("eigen", None), ("columns", 0), ("columns", 1001), ("columns", 2.0), ("steps", 0),
        ("steps", 101), ("steps", True), ("level_shrink", -1.0), ("level_shrink", 1e6),
        ("level_shrink", math.nan), ("level_shrink", None),
    ],
    tacit.FrankWolfe: [
        *PREPARED, *STARTED, *OJA_SETTINGS,
        ("rounds", 1), ("rounds", 10_001), ("rounds", 2.5), ("rounds", True),
        ("nuclear_norm", 0), ("nuclear_norm", math.inf), ("nuclear_norm", "small"),
        ("residual_clip", 0), ("residual_clip", 2.5), ("residual_clip", None), ("shift", 1),
        ("step", "1/t"), ("step", None),
        ("beta", 0.0), ("beta", 1.0), ("beta", math.nan), ("local", "mean"), ("local", None),
        ("schedule", 99), ("schedule", (1.0, 2.0)), ("schedule", [1.0] * 9),
        ("schedule", (0.0,) * 9), ("schedule", math.nan), ("schedule", "fast"),
    ],
    tacit.SVD: [
        *PREPARED, *STARTED, *OJA_SETTINGS,
        ("rank", 0), ("rank", 1.5), ("rank", True), ("rank", None),
        ("count_share", -0.1), ("count_share", 0.9), ("count_share", math.nan),
        ("count_share", None),
    ],
    tacit.ProjectedGradient: [
        *PREPARED,
        ("rounds", 0), ("rounds", 1001), ("rounds", 2.5), ("rounds", True),
        ("nuclear_norm", 0), ("nuclear_norm", math.inf), ("nuclear_norm", "small"),
        ("rate", 0), ("rate", 1.5), ("rate", math.nan), ("rate", "t^-2"), ("rate", None),
        ("filled_norm", 0), ("filled_norm", math.nan), ("filled_norm", "long"),
        ("schedule", 99), ("schedule", (1.0, 2.0)), ("schedule", [1.0] * 5),
        ("schedule", (0.0,) * 5), ("schedule", math.nan), ("schedule", "fast"),
    ],
    tacit.Cleansing: [
        *COMMON,
        ("rank", 0), ("rank", 1.5), ("nearest", 0), ("nearest", True), ("local", "ridge"),
        ("clip", 0), ("clip", math.inf), ("clip", "tight"), ("beta_m", 0), ("beta_m", math.nan),
        ("beta_p", -1), ("beta_p", None), ("beta", 0.0), ("beta", math.inf),
        ("cleaning", "clean"), ("cleaning", None), ("beta_diagonal", 0.0),
        ("beta_diagonal", math.nan), ("beta_diagonal", "same"),
        ("shares", (0.5, 0.5)), ("shares", (0.5, 0.5, 0.5)), ("shares", (1.0, 0.0, 0.0)),
        ("shares", [0.1, 0.6, 0.3]), ("shares", 0.3), ("shares", ("a", "b", "c")),
    ],
    tacit.ALS: [
        *COMMON, *STARTED,
        ("rank", 0), ("rank", 1001), ("rank", 1.5), ("rank", "low"), ("start_rank", 0),
        ("start_rank", "wide"), ("rounds", 0), ("rounds", 101), ("rounds", True),
        ("means_share", 0.0), ("means_share", 0.9), ("means_share", math.nan), ("clip", 0.0),
        ("clip", math.inf), ("clip", "tight"), ("reach", 0), ("reach", math.nan), ("reach", None),
        ("ratio", 0.0), ("ratio", math.inf), ("ratio", "even"), ("alpha", -0.1), ("alpha", 1.5),
        ("alpha", None), ("frequent", -1), ("frequent", math.nan), ("pooling", 1),
        ("pooling", None), ("ridge", 0), ("ridge", math.inf), ("shrink", -1.0), ("shrink", None),
    ],
    tacit.NoisyGradient: [
        *PREPARED, *STARTED,
        ("rank", 0), ("rank", 1001), ("rank", 1.5), ("rounds", 0), ("rounds", 10_001),
        ("rate", 0), ("rate", math.inf), ("rate", None), ("rate", "fast"), ("clip", 0.0),
        ("clip", math.nan), ("clip", "tight"), ("ridge", 0), ("ridge", -1.0), ("ridge", math.inf),
        ("start_scale", 0), ("start_scale", math.nan), ("start_scale", "wide"),
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "setting", "value"),
    [(kind, *wrong) for kind, settings in WRONG.items() for wrong in settings],
    ids=lambda part: part.__name__ if isinstance(part, type) else repr(part),
)
def test_a_wrong_setting_is_named(kind: type, setting: str, value: Any) -> None:
    with pytest.raises(tacit.ConfigError, match=rf"^{setting}="):
        kind(**{setting: value})


@pytest.mark.parametrize("kind", WRONG, ids=lambda kind: kind.__name__)
def test_every_setting_is_tried(kind: type) -> None:
    """The lists above leave no setting out."""
    tried = {setting for setting, _ in WRONG[kind]}
    assert tried == {field.name for field in fields(kind)}


@pytest.mark.parametrize("kind", WRONG, ids=lambda kind: kind.__name__)
def test_the_defaults_and_every_case_are_sound(kind: type) -> None:
    assert kind() == kind()
    assert any(isinstance(case, kind) for case in CASES.values())
