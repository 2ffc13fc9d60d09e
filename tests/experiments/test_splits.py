"""Splits: every draw tests other ratings, and nothing is chosen on any of them."""

from dataclasses import replace

import numpy as np
import pytest

from tacit.data.ratings import Ratings
from tacit.research.experiments.jobs import Job
from tacit.research.experiments.preparing import Prepared, prepare

FACTS = {"synthetic": "rank-one", "users": 300, "items": 30, "per_user": 10, "test_share": 0.05}
RUN = Job(FACTS, "svd")
TRIAL = replace(RUN, role="trial", kept_out=0.2, validation=0.1)


@pytest.fixture(scope="module")
def prepared() -> Prepared:
    return prepare(FACTS)


def pairs(ratings: Ratings) -> set[tuple[int, int]]:
    people = np.repeat(ratings.user_ids.to_numpy(), np.diff(ratings.indptr))
    return set(zip(people.tolist(), ratings.items.tolist(), strict=True))


def test_a_draw_is_cut_into_two_parts(prepared: Prepared) -> None:
    train, test = prepared.parts(RUN)
    assert train.n_users == 300
    assert not pairs(train) & pairs(test)
    assert len(pairs(train) | pairs(test)) == 3000
    assert 100 < len(pairs(test)) < 200  # 150 expected, sd 12: beyond 4 sd one time in 20,000


def test_the_same_draw_is_the_same_anywhere_and_others_test_other_ratings(
    prepared: Prepared,
) -> None:
    tests = [pairs(prepared.parts(replace(RUN, draw=draw))[1]) for draw in range(4)]
    assert sum(map(len, tests)) == len(set.union(*tests))
    assert pairs(prepare(FACTS).parts(replace(RUN, draw=2))[1]) == tests[2]


def test_a_trial_sees_no_rating_of_any_test_part(prepared: Prepared) -> None:
    train, validation = (pairs(part) for part in prepared.parts(TRIAL))
    tests = [pairs(prepared.parts(replace(RUN, draw=draw))[1]) for draw in range(4)]
    assert train
    assert validation
    assert not (train | validation) & set.union(*tests)
    assert not train & validation
    later = pairs(prepared.parts(replace(RUN, draw=4))[1])
    assert later & (train | validation)  # the check could fail: a fifth draw is not kept out


def test_new_users_are_in_no_fit_and_new_once(prepared: Prepared) -> None:
    apart = Prepared(FACTS | {"test_share": 0.0, "new_users": 0.1}, prepared.ratings)
    seen: set[int] = set()
    for draw in range(4):
        train, new = apart.parts(replace(RUN, draw=draw))
        known, tested = set(train.user_ids.to_list()), set(new.user_ids.to_list())
        assert not known & tested
        assert len(known | tested) == 300
        assert tested
        assert not tested & seen
        assert len(pairs(new)) == 10 * len(tested), "all ratings of a new user are hers to split"
        seen |= tested


def test_the_hidden_matrix_is_that_of_the_ratings(prepared: Prepared) -> None:
    truth = prepared.truth
    assert truth is not None
    people = np.repeat(prepared.ratings.user_ids.to_numpy(), np.diff(prepared.ratings.indptr))
    hidden = truth.left[people] * truth.right[prepared.ratings.items]
    np.testing.assert_allclose(prepared.ratings.values, hidden, atol=1e-6)
    whole = np.outer(truth.left, truth.right)
    assert truth.nuclear_norm == pytest.approx(np.linalg.norm(whole, "nuc"))
    assert truth.row_norm == pytest.approx(np.linalg.norm(whole, axis=1).max())


def test_words_become_numbers(prepared: Prepared) -> None:
    job = replace(RUN, settings={"nuclear_norm": "truth", "rounds": "theory"}, epsilon=1.0)
    found = prepared.settings_of(job)
    assert found["nuclear_norm"] == prepared.truth.nuclear_norm  # type: ignore[union-attr]
    more = prepared.settings_of(replace(job, epsilon=4.0))
    assert 2 <= found["rounds"] <= more["rounds"]
