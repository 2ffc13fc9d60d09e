"""The interface of `implicit`: the facts that its own suite checks of every model, and privacy.

`implicit` ships no tests, so that they are stated here again, for a fit without noise: a
checkerboard, in which every user has the items of her parity but one. The package is not needed.
"""

import io
import pickle
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import tacit
from tacit.errors import ConfigError, DataError, ModelFileError, RefusedError, TacitWarning
from tacit.integrations.implicit import PrivateRecommender
from tests.integrations.boards import checkerboard

SIZE = 50
LIKES = checkerboard(SIZE)


@pytest.fixture(scope="module")
def model() -> PrivateRecommender:
    return fitted(LIKES)


def fitted(likes: csr_matrix, **settings: object) -> PrivateRecommender:
    made = PrivateRecommender(**(settings or {"nonprivate": True}))  # type: ignore[arg-type]
    made.fit(likes, show_progress=False)
    return made


def test_everyone_is_recommended_the_one_that_she_lacks(model: PrivateRecommender) -> None:
    for user in range(SIZE):
        ids, scores = model.recommend(user, LIKES[user], N=1)
        assert ids.tolist() == [user]
        assert scores.dtype == np.float32


def test_several_users_get_what_each_gets_alone(model: PrivateRecommender) -> None:
    users = np.array([2, 3, 4])
    ids, scores = model.recommend(users, LIKES[users], N=5, filter_already_liked_items=False)
    for row, user in enumerate(users):
        alone = model.recommend(int(user), LIKES[user], N=5, filter_already_liked_items=False)
        np.testing.assert_array_equal(ids[row], alone[0])
        np.testing.assert_allclose(scores[row], alone[1])


def test_the_number_of_a_user_says_nothing(model: PrivateRecommender) -> None:
    """Twin of a model that keeps user factors: there, another number would change the list."""
    own = model.recommend(7, LIKES[8], N=3)
    np.testing.assert_array_equal(own[0], model.recommend(10**9, LIKES[8], N=3)[0])
    assert own[0][0] == 8


def test_lists_are_in_order_and_no_longer_than_there_are_items(model: PrivateRecommender) -> None:
    ids, scores = model.recommend(0, LIKES[0], N=10_000)
    assert len(ids) == SIZE - LIKES[0].nnz
    assert np.all(np.diff(scores) <= 0)
    batch, _ = model.recommend([0, 1], LIKES[:2], N=SIZE)
    assert np.sum(batch[0] == -1) == LIKES[0].nnz


def test_filters(model: PrivateRecommender) -> None:
    assert 0 not in model.recommend(0, LIKES[0], N=5, filter_items=[0])[0]
    ranked, _ = model.recommend(0, LIKES[0], N=20, items=[1, 2, 3, 4, 5, 6])
    assert sorted(ranked) == [1, 2, 3, 4, 5, 6]
    assert set(ranked[3:]) == {2, 4, 6}  # what she has comes last
    for wrong in ([-1, 2], [2, SIZE]):
        with pytest.raises(IndexError, match="1 columns do not exist"):
            model.recommend(0, LIKES[0], items=wrong)
    with pytest.raises(ConfigError, match="give one of them"):
        model.recommend(0, LIKES[0], items=[1], filter_items=[2])


def test_similar_items_are_of_the_same_parity_and_itself_first(model: PrivateRecommender) -> None:
    ids, scores = model.similar_items(np.arange(SIZE), N=10)
    assert ids.shape == (SIZE, 10)
    np.testing.assert_array_equal(ids[:, 0], np.arange(SIZE))
    np.testing.assert_allclose(scores[:, 0], 1.0)
    assert np.all(ids % 2 == np.arange(SIZE)[:, None] % 2)
    np.testing.assert_array_equal(model.similar_items(3, N=10)[0], ids[3])
    assert set(model.similar_items(3, N=4, items=[1, 2, 3, 4])[0]) == {1, 2, 3, 4}
    assert not set(model.similar_items(3, filter_items=[3, 5])[0]) & {3, 5}


def test_an_item_that_nobody_touched_is_similar_to_none() -> None:
    board = LIKES.toarray()
    for gone in (42, 49):
        board[gone] = 0
        board[:, gone] = 0
    model = fitted(csr_matrix(board))
    for item in range(40):
        assert 42 not in model.similar_items(item)[0]


def test_other_formats_are_converted_with_a_warning() -> None:
    for other in (LIKES.tocoo(), LIKES.tolil()):
        with pytest.warns(TacitWarning, match="expected CSR"):
            PrivateRecommender(nonprivate=True).fit(other, show_progress=False)
    with pytest.raises(ConfigError, match="scipy sparse matrix"):
        PrivateRecommender(nonprivate=True).fit(LIKES.toarray())


def test_what_is_not_an_interaction() -> None:
    """A stored zero is none, and a dislike is refused: its number shows, and nothing else."""
    stored = LIKES.astype(np.float64)
    stored.data[:10] = 0.0
    without = stored.copy()
    without.eliminate_zeros()
    one, other = fitted(stored), fitted(without)
    np.testing.assert_array_equal(one.recommend(0, LIKES[0])[0], other.recommend(0, LIKES[0])[0])
    stored.data[:3] = -1.0
    with pytest.raises(DataError, match="3 entries are negative"):
        fitted(stored)


def test_rows_must_be_brought(model: PrivateRecommender) -> None:
    for wrong in (None, LIKES[0].tocsc(), LIKES[0].tocoo()):
        with pytest.raises(ValueError, match="CSR"):
            model.recommend(0, wrong)
    with pytest.raises(ValueError, match="2 rows for 1 users"):
        model.recommend(0, LIKES[:2])
    with pytest.raises(ConfigError, match="not been fitted"):
        PrivateRecommender(epsilon=1).recommend(0, LIKES[0])


def test_what_would_break_the_promise_is_refused_with_the_reason(model: PrivateRecommender) -> None:
    with pytest.raises(NotImplementedError, match="holds nothing of any user"):
        model.similar_users(0, N=5)
    with pytest.raises(RefusedError, match="without noise"):
        model.similar_items(0, recalculate_item=True, item_users=LIKES.T.tocsr()[0])
    with pytest.raises(ConfigError, match="give epsilon"):
        PrivateRecommender().fit(LIKES)
    with pytest.raises(ConfigError, match="give one of them"):
        PrivateRecommender(epsilon=1, nonprivate=True).fit(LIKES)


def test_item_factors_and_the_vector_of_a_row_make_the_score(model: PrivateRecommender) -> None:
    ids, scores = model.recommend(3, LIKES[3], N=5)
    hers = model.recalculate_user(3, LIKES[3])
    np.testing.assert_allclose(model.item_factors[ids] @ hers, scores, rtol=1e-4)
    two = model.recalculate_user([3, 4], LIKES[3:5])
    np.testing.assert_allclose(two[0], hers)
    assert two.shape == (2, model.item_factors.shape[1])


def test_explain_says_what_a_row_adds_to_a_score(model: PrivateRecommender) -> None:
    """The items of the same parity add, and all of them make the score."""
    ids, scores = model.recommend(3, LIKES[3], N=1)
    total, added, _ = model.explain(3, LIKES, int(ids[0]), N=100)
    assert total == pytest.approx(float(scores[0]), rel=1e-5)
    assert sorted(item for item, _ in added) == sorted(LIKES[3].indices.tolist())
    assert [value for _, value in added] == sorted((value for _, value in added), reverse=True)
    assert added[0][0] % 2 == ids[0] % 2
    assert model.explain(0, LIKES[3], int(ids[0]), N=2)[1] == added[:2]
    with pytest.raises(IndexError, match="userid=3: user_items has 1 rows"):
        model.explain(3, LIKES[3], int(ids[0]))


def test_what_is_missing_says_why(model: PrivateRecommender) -> None:
    for name, told in {"user_factors": "recalculate_user", "partial_fit_items": "features"}.items():
        assert not hasattr(model, name)
        with pytest.raises(AttributeError, match=told):
            getattr(model, name)
    with pytest.raises(AttributeError, match=r"has no weather$"):
        model.weather  # noqa: B018
    with pytest.raises(ConfigError, match=r"factors=64: leave it out; .*Interactions\(rank="):
        PrivateRecommender(epsilon=1.0, factors=64)
    with pytest.raises(ConfigError, match="no seed"):
        PrivateRecommender(epsilon=1.0, random_state=0)
    with pytest.raises(TypeError, match="no setting 'epsylon'"):
        PrivateRecommender(epsylon=1.0)


def test_files_are_model_files(model: PrivateRecommender, tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    model.save(path)
    assert tacit.load(path).verify().holds == model.model.verify().holds  # type: ignore[union-attr]
    with io.BytesIO() as file:
        model.save(file)
        file.seek(0)
        for read in (model.load(path), PrivateRecommender.load(file)):
            np.testing.assert_array_equal(read.similar_items(1)[1], model.similar_items(1)[1])
    (tmp_path / "other").write_bytes(b'{"algorithm": 3}')
    with pytest.raises(ModelFileError):
        PrivateRecommender.load(tmp_path / "other")


def test_settings_come_back() -> None:
    """Of a private model from its certificate; of an unfitted one from what it wrote."""
    private = fitted(LIKES, epsilon=2.0, delta=1e-7, neighbours="add_remove")
    with io.BytesIO() as file:
        private.save(file)
        file.seek(0)
        back = PrivateRecommender.load(file)
    assert (back.epsilon, back.delta, back.neighbours) == (2.0, 1e-7, "add_remove")
    fresh = PrivateRecommender(epsilon=0.5, algorithm=tacit.Interactions(rank=3))
    with io.BytesIO() as file:
        fresh.save(file)
        file.seek(0)
        assert PrivateRecommender.load(file).__dict__ == fresh.__dict__


def test_a_pickle_holds_the_published_model_and_nothing_else(model: PrivateRecommender) -> None:
    """Ten times as many people, and the pickle is as long: nothing of them is in it."""
    again = pickle.loads(pickle.dumps(model))  # noqa: S301 - our own
    np.testing.assert_array_equal(again.recommend(0, LIKES[0])[0], model.recommend(0, LIKES[0])[0])
    crowd = csr_matrix(np.tile(LIKES.toarray(), (10, 1)))
    sizes = [len(pickle.dumps(fitted(likes, epsilon=1.0))) for likes in (LIKES, crowd)]
    assert abs(sizes[1] - sizes[0]) < 0.1 * sizes[0]
    state = model.__getstate__()
    assert set(state) == set(PrivateRecommender().__dict__)
    assert isinstance(state["model"], bytes)


def test_a_callback_is_called_for_every_release() -> None:
    calls: list[tuple[int, float, float]] = []
    model = PrivateRecommender(nonprivate=True)
    model.fit(LIKES, show_progress=False, callback=lambda *told: calls.append(told))
    assert len(calls) >= 1
    assert calls[-1][0] >= 1
    assert calls[-1][2] == 1.0
