"""A published model as a pyfunc of MLflow: saved, logged and loaded without a pickle.

What is saved is the model file, `model.tacit`, and a few lines of code that read it. The model
holds nothing of any user; people's own ratings are the input of `predict`.
"""

import tempfile
from importlib.metadata import version
from os import PathLike
from pathlib import Path
from typing import Any

import polars as pl

from tacit.errors import ConfigError, DataError, MissingPackage
from tacit.models import Model, load

try:
    import mlflow.pyfunc
    import pandas as pd
    from mlflow.models import ModelSignature
    from mlflow.types import ColSpec, ParamSchema, ParamSpec, Schema
    from mlflow.types.schema import AnyType
except ImportError:
    raise MissingPackage("tacit.integrations.mlflow", "MLflow", "mlflow") from None

__all__ = ["PrivateModel", "log_model", "save_model"]

_CODE = Path(__file__).with_name("mlflow_code.py")
_NAME = "model"
_LENGTH = 10


class PrivateModel(mlflow.pyfunc.PythonModel):  # type: ignore[misc]
    """Recommends from the own ratings of the people in a frame.

    `predict` takes a frame with the columns item and rating (item alone for a model of
    interactions), and user where there are several people; a user says whose ratings belong
    together, and nothing is looked up by it. It returns a frame with user, item, title, score and
    rank. `params={"n": 5}` asks for lists of five.
    """

    def load_context(self, context: Any) -> None:
        """Read the model file."""
        self.model = load(context.artifacts[_NAME])

    def predict(self, context: Any, model_input: pd.DataFrame, params: Any = None) -> pd.DataFrame:  # noqa: ARG002
        """Return the best items for each user in the input."""
        length = int((params or {}).get("n", _LENGTH))
        found: list[dict[str, Any]] = []
        for user, own in _people(model_input, self.model.implicit):
            best = self.model.recommend(own, length)
            found += [
                {"user": user, "item": row.item, "title": row.title, "score": row.score, "rank": at}
                for at, row in enumerate(best, 1)
            ]
        return pd.DataFrame(found, columns=["user", "item", "title", "score", "rank"])


def save_model(model: Model, path: str | PathLike[str], **options: Any) -> None:
    """Save a model in the format of MLflow, to a folder that does not exist yet.

    Args:
        model: a published model.
        path: the folder.
        options: for `mlflow.pyfunc.save_model`; they replace what is set here.
    """
    with tempfile.TemporaryDirectory() as folder:
        mlflow.pyfunc.save_model(path=str(path), **(_parts(model, Path(folder)) | options))


def log_model(model: Model, name: str = "recommender", **options: Any) -> Any:
    """Log a model to the active run of MLflow; return what `mlflow.pyfunc.log_model` returns.

    What it logs is what may be published: the model file with its certificate. Metrics of
    accuracy are not: they are computed from ratings.

    Args:
        model: a published model.
        name: under which it is logged.
        options: for `mlflow.pyfunc.log_model`; they replace what is set here.
    """
    with tempfile.TemporaryDirectory() as folder:
        return mlflow.pyfunc.log_model(name=name, **(_parts(model, Path(folder)) | options))


def _parts(model: Model, folder: Path) -> dict[str, Any]:
    """Write the model file; return what MLflow is to save."""
    if not isinstance(model, Model):
        raise ConfigError(f"model={type(model).__name__}: expected a tacit.Model")
    path = folder / "model.tacit"
    model.save(path)
    return {
        "python_model": str(_CODE),
        "artifacts": {_NAME: str(path)},
        "signature": _signature(model),
        "input_example": _example(model),
        "pip_requirements": [f"tacit[mlflow]=={version('tacit')}"],
        "metadata": _metadata(model),
    }


def _signature(model: Model) -> ModelSignature:
    """Say which columns go in and come out."""
    ids = "long" if model.catalogue.ids.dtype.is_integer() else "string"
    # "double" would refuse whole numbers, and MLflow's message would quote the frame
    columns = [ColSpec(AnyType(), "user", required=False), ColSpec(ids, "item")]
    if not model.implicit:
        columns.append(ColSpec(AnyType(), "rating"))
    answers = {"user": AnyType(), "item": ids, "title": "string", "score": "double", "rank": "long"}
    made = [ColSpec(kind, name, required=name != "user") for name, kind in answers.items()]
    params = ParamSchema([ParamSpec("n", "long", _LENGTH)])
    return ModelSignature(Schema(columns), Schema(made), params)


def _example(model: Model) -> pd.DataFrame:
    """Return the ratings of someone who is made up: the first item, in the middle of the range."""
    made_up: dict[str, list[Any]] = {"user": ["made up"], "item": [model.catalogue.ids[0]]}
    if not model.implicit:
        made_up["rating"] = [float(sum(model.rating_range) / 2)]
    return pd.DataFrame(made_up)


def _metadata(model: Model) -> dict[str, Any]:
    """Return the promise, so that it shows in the registry."""
    budget = model.certificate.budget
    if budget is None or not model.private:
        return {"tacit": {"private": False}}
    return {
        "tacit": {
            "private": True,
            "epsilon": budget.epsilon,
            "delta": budget.delta,
            "neighbours": str(budget.neighbours),
        }
    }


def _people(frame: Any, implicit: bool) -> list[tuple[Any, Any]]:
    """Return everyone's own ratings, in the order in which users first appear."""
    columns = ["item"] if implicit else ["item", "rating"]
    missing = [name for name in columns if name not in getattr(frame, "columns", ())]
    if missing:
        raise DataError(f"model_input: no column {missing[0]!r}; expected {', '.join(columns)}")
    table = {name: frame[name].to_list() for name in columns}
    users = frame["user"].to_list() if "user" in frame.columns else [None] * len(frame)
    rows = pl.DataFrame(table)
    places: dict[Any, list[int]] = {}
    for at, user in enumerate(users):
        places.setdefault(user, []).append(at)
    return [(user, rows[at]) for user, at in places.items()]
