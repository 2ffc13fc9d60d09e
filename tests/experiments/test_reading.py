"""Experiment files: sound ones are read, and every slip is named."""

import math
import tomllib
from pathlib import Path

import pytest
from tests.support.small_experiment import LISTS

import tacit
from tacit.algorithms import ALGORITHMS
from tacit.errors import ConfigError
from tacit.fitting.fit import automatic
from tacit.research.experiments.paths import experiment_names
from tacit.research.experiments.reading import parse_experiment, read_experiment
from tacit.research.experiments.spec import multiple_of_truth, points_of_grid

GOOD = """
title = "A title"
about = "What it shows."
draws = 3
epsilons = [0.5, 2, inf]
max_ratings = 80

[[datasets]]
synthetic = "few"

[[methods]]
algorithm = "frank-wolfe"
settings = { rounds = 4 }

[[methods]]
algorithm = "svd"
label = "tuned"
max_ratings = "own"
tune = { rank = [1, 3], eigen = ["exact", "power"] }
"""


def changed(old: str, new: str) -> str:
    assert old in GOOD
    return GOOD.replace(old, new, 1)


def test_a_file_says_what_is_run() -> None:
    found = parse_experiment("mine", GOOD)
    assert found.epsilons == (0.5, 2.0, math.inf)
    assert found.datasets[0].facts == {"synthetic": "few", "test_share": 0.01}
    assert found.methods[0].settings == {"rounds": 4, "max_ratings": 80}
    assert found.methods[1].settings == {}
    assert [len(points_of_grid({}, grid)) for grid in found.methods[1].grids] == [4]
    assert found.methods[0].grids == ()


OPEN = """
title = "Mine"
about = "A file of my own."
epsilons = [1]

[[datasets]]
file = "mine"
users = 30
items = 4
ratings = 60
lowest = 1
highest = 5

[[methods]]
algorithm = "user-mean"
"""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("title = ", "not TOML"),
        (changed('title = "A title"\n', ""), "title is missing"),
        (changed("draws = 3", "draws = 0"), "draws=0: expected a whole number from 1"),
        (changed("draws = 3", "draws = true"), "draws=True"),
        (changed("draws = 3", "drawz = 3"), "no such key as drawz"),
        (changed("[0.5, 2, inf]", "[2, 0.5]"), "the smallest first"),
        (changed("[0.5, 2, inf]", "[0.0, 1]"), "epsilons"),
        (changed("[0.5, 2, inf]", "[nan]"), "epsilons"),
        (changed('synthetic = "few"', 'synthetic = "lots"'), "synthetic='lots': expected one of"),
        (changed('synthetic = "few"', 'name = "lots"'), "name='lots': expected one of"),
        (changed('synthetic = "few"', 'synthetic = "few"\nname = "jester"'), "give one of name"),
        (changed('synthetic = "few"', 'synthetic = "few"\ntop = 3'), "no such key as top"),
        (changed('synthetic = "few"', 'synthetic = "few"\nusers = "x"'), "users='x'"),
        (changed('"frank-wolfe"', '"frank"'), "algorithm='frank': expected one of automatic"),
        (changed("rounds = 4", "rounds = 1"), "methods 1: rounds=1"),
        (changed("rounds = 4", "turns = 1"), "turns=1: frank-wolfe has no such setting"),
        (changed("rank = [1, 3]", "rank = [1, 0]"), "methods 2: rank=0"),
        (changed("rank = [1, 3]", "rank = 1"), "tune.rank=1: expected a list"),
        (changed("tune = {", "tune = 3 # {"), "tune=3: expected a table of lists"),
        (
            changed("tune = { rank", "tune = [{}, { rank").replace('"power"] }', '"power"] }]'),
            "tune",
        ),
        (
            changed("tune = { rank", "tune = [{ rank").replace(
                '"power"] }', '"power"] }, { steps = [0] }]'
            ),
            "steps",
        ),
        (GOOD + "tuned_at = [2, 1]\n", "tuned_at"),
        (GOOD + "tuned_users = 0\n", "tuned_users"),
        (
            GOOD.replace('synthetic = "few"', 'name = "jester"') + "tuned_users = 500\n",
            "tuned_users goes with synthetic datasets only",
        ),
        (GOOD + 'like = "nobody"\n', "no method has the label 'nobody'"),
        (changed("rounds = 4", 'nuclear_norm = "twice truth"'), "nuclear_norm='twice truth'"),
        (changed("rounds = 4", 'rounds = "truth"'), "rounds='truth'"),
        (changed('label = "tuned"', 'label = "frank-wolfe"'), "given twice"),
        (changed("max_ratings = 80", 'max_ratings = "some"'), "max_ratings='some'"),
        ('leader = "nobody"\n' + GOOD, "no method has the label 'nobody'"),
        ('measure = "beauty"\n' + GOOD, "measure='beauty'"),
        ('measure = "frobenius"\n' + GOOD, "goes with rank-one"),
        ("test_share = 0.2\n" + GOOD, "take up too much"),
        ('measure = "ndcg"\nleader = "tuned"\n' + GOOD, "least error"),
        ("new_users = 0.1\n" + GOOD, "new_users above 0 goes with measure"),
        ('also = ["recall_20"]\n' + GOOD, "new_users above 0 goes with measure"),
        ('also = ["rmse"]\n' + GOOD, "also=['rmse']: expected a list of"),
        (LISTS + '\n[[methods]]\nalgorithm = "user-mean"\n', "user-mean cannot be measured so"),
        (LISTS.replace("draws = 2", "draws = 5"), "give fewer draws"),
        ("test_share = 0.1\n" + LISTS, "there is no test_share"),
        (GOOD + '\n[[methods]]\nalgorithm = "popularity"\n', "popularity cannot be measured so"),
        (changed('synthetic = "few"', 'file = "mine"'), "users"),
        (OPEN.replace("highest = 5", "highest = 1"), "highest=1: expected a whole number above"),
        (GOOD + '\n[[guides]]\nmethod = "tuned"\nbound = "x"\n', "bound='x'"),
        (GOOD + '\n[[methods]]\nalgorithm = "user-mean"\nsettings = { a = 1 }\n', "no settings"),
        (GOOD + '\n[[methods]]\nalgorithm = "automatic"\naccounting = "x"\n', "accounting='x'"),
    ],
)
def test_every_slip_is_named(text: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_experiment("mine", text)
    assert "mine.toml" in str(caught.value)
    assert words in str(caught.value)


def test_a_norm_may_be_a_multiple_of_the_true_one() -> None:
    settings = 'nuclear_norm = "1.6 truth", rounds = "theory"'
    found = parse_experiment("mine", changed("rounds = 4", settings))
    assert multiple_of_truth(found.methods[0].settings["nuclear_norm"]) == 1.6
    for wrong in ("1.6truth", "-1 truth", "truth 2", "1e3 truth", "", 1.6, None):
        assert multiple_of_truth(wrong) is None


@pytest.mark.parametrize("name", experiment_names())
def test_every_experiment_of_the_house_is_sound(name: str) -> None:
    found = read_experiment(name)
    assert found.title
    small = found.made_quick()
    assert small.draws <= 2
    assert not any(method.grid for method in small.methods)


def test_the_figures_of_the_paper_are_all_there() -> None:
    paper = {f"figure-2{letter}" for letter in "abcde"}
    paper |= {f"figure-3{letter}" for letter in "abcd"}
    assert paper | {"leaderboard"} <= set(experiment_names())
    for name in paper:
        found = read_experiment(name)
        assert (found.delta, found.draws) == (1e-6, 10)
        assert {dataset.test_share for dataset in found.datasets} == {0.01}
        caps = {m.settings.get("max_ratings") for m in found.methods if m.algorithm == "oja"}
        assert caps == ({None} if name == "figure-2b" else {80})
        method = {one.label: one for one in found.methods}
        assert {f"{one} at its best" for one in ("Frank-Wolfe", "Oja", "PGD")} <= set(method)
        assert method["SVD after cleansing, as in 2009"].settings["cleaning"] == "mm09"
        both = [method[one] for one in ("Private Frank-Wolfe", "Private PGD") if one in method]
        assert len({one.grid.get("nuclear_norm") for one in both}) == 1  # the same k


def test_the_leaderboard_has_every_algorithm() -> None:
    found = read_experiment("leaderboard")
    meant = {*ALGORITHMS, "automatic", "user-mean"} - {automatic().name}
    names = [method.algorithm for method in found.methods]
    assert meant <= set(names)
    assert automatic().name not in names, "the default is there as automatic; twice would be waste"
    assert found.leader == "automatic"


def test_an_unknown_name_is_answered_with_those_there_are() -> None:
    with pytest.raises(ConfigError, match="figure-2a"):
        read_experiment("fig9z")


def test_the_file_in_the_documentation_is_sound() -> None:
    page = (Path(tacit.__file__).parents[2] / "docs" / "results" / "README.md").read_text()
    found = parse_experiment("shown", page.partition("```toml\n")[2].partition("```")[0])
    assert [method.label for method in found.methods] == ["tacit", "frank-wolfe"]


def test_a_wheel_takes_the_files_along() -> None:
    root = Path(tacit.__file__).parents[2]
    wheel = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
    assert "/experiments/*.toml" in wheel["targets"]["wheel"]["include"]
    assert wheel["targets"]["wheel"]["sources"]["experiments"] == "tacit/research/experiments/files"
