"""A model of MLflow: code and a model file, and nothing that runs when it is unpickled."""

from pathlib import Path

import pytest

import tacit
from tacit.errors import ConfigError, DataError
from tests.conftest import ratings_for

pytest.importorskip("mlflow")

import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of MLflow's own type hints, when it is loaded
    import mlflow
    import mlflow.pyfunc

import pandas as pd

from tacit.integrations.mlflow import log_model, save_model

pytestmark = [
    pytest.mark.extras,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # of MLflow's own dependencies
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]
OWN = {"film-01": 5.0, "film-02": 1.0, "film-03": 2.0}
FRAME = pd.DataFrame({"item": list(OWN), "rating": list(OWN.values())})


@pytest.fixture(scope="module")
def model() -> tacit.Model:
    return tacit.fit(ratings_for(0), tacit.Moments(), epsilon=1.0)


@pytest.fixture(scope="module")
def folder(model: tacit.Model, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("mlflow") / "saved"
    save_model(model, path)
    return path


def test_it_recommends_as_the_model_does(model: tacit.Model, folder: Path) -> None:
    loaded = mlflow.pyfunc.load_model(str(folder))
    found = loaded.predict(FRAME, params={"n": 3})
    expected = model.recommend(OWN, 3)
    assert found["item"].tolist() == [row.item for row in expected]
    assert found["title"].tolist() == [row.title for row in expected]
    assert found["score"].tolist() == pytest.approx([row.score for row in expected])
    assert found["rank"].tolist() == [1, 2, 3]


def test_several_people_are_kept_apart(folder: Path) -> None:
    loaded = mlflow.pyfunc.load_model(str(folder))
    both = pd.concat([FRAME.assign(user="ann"), FRAME[:1].assign(user="bob")])
    found = loaded.predict(both.sample(frac=1.0, random_state=0), params={"n": 2})
    alone = loaded.predict(FRAME[:1].assign(user="bob"), params={"n": 2})
    assert found[found["user"] == "bob"]["item"].tolist() == alone["item"].tolist()
    assert set(found["user"]) == {"ann", "bob"}


def test_there_is_no_pickle_and_no_row_in_what_is_saved(folder: Path) -> None:
    files = {path.name for path in folder.rglob("*") if path.is_file()}
    assert {"model.tacit", "mlflow_code.py", "MLmodel"} <= files
    assert not [name for name in files if name.endswith((".pkl", ".pickle", ".joblib"))]
    for path in folder.rglob("*"):
        assert path.is_dir() or b"user-000" not in path.read_bytes()  # ids of ratings_for
    assert tacit.load(folder / "artifacts" / "model.tacit").verify().holds


def test_the_promise_is_in_the_metadata(folder: Path) -> None:
    facts = mlflow.models.Model.load(str(folder)).metadata["tacit"]
    assert facts == {"private": True, "epsilon": 1.0, "delta": 1e-6, "neighbours": "replace"}


def test_logged_to_a_run(
    model: tacit.Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.chdir(tmp_path)
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    with mlflow.start_run():
        info = log_model(model, "films")
    assert len(mlflow.pyfunc.load_model(info.model_uri).predict(FRAME)) == 10


def test_whole_numbers_are_ratings_and_users(folder: Path) -> None:
    """As in a frame of stars read from a file; MLflow would refuse them for `double`."""
    loaded = mlflow.pyfunc.load_model(str(folder))
    whole = FRAME.assign(rating=FRAME["rating"].round().astype(int))
    expected = loaded.predict(whole.assign(rating=whole["rating"].astype(float)))
    pd.testing.assert_frame_equal(loaded.predict(whole), expected)
    assert set(loaded.predict(whole.assign(user=7))["user"]) == {7}


def test_interactions_and_what_it_refuses(tmp_path: Path) -> None:
    touched = tacit.Ratings.from_arrays([1, 1, 2, 2, 3], [7, 8, 7, 9, 8], implicit=True)
    save_model(tacit.fit(touched, budget=None), tmp_path / "touched")
    loaded = mlflow.pyfunc.load_model(str(tmp_path / "touched"))
    assert loaded.metadata.metadata["tacit"] == {"private": False}
    assert loaded.predict(pd.DataFrame({"item": [7]}))["item"].tolist()[0] in (8, 9)
    with pytest.raises(DataError, match="no column 'item'"):
        loaded.unwrap_python_model().predict(None, pd.DataFrame({"film": [7]}))
    with pytest.raises(ConfigError, match="expected a tacit"):
        save_model("model.tacit", tmp_path / "other")  # type: ignore[arg-type]
