"""Public features of items: how they are read, and what a model makes of them."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import tacit
from tacit.data.features import FeatureColumn, ItemFeatures

TABLE: dict[str, Any] = {
    "year": [1999, None, 2004],
    "genre": ["drama|war", "war", ""],
    "short": [True, False, None],
    "text": [[0.5, 1.0], [2.0, 3.0], None],
    "tags": [["x"], ["y", "x"], None],
}
NAMES = ["year", "drama", "war", "short", "0", "1", "x", "y"]
VALUES = [
    [1999.0, 1, 1, 1, 0.5, 1, 1, 0],
    [np.nan, 0, 1, 0, 2, 3, 1, 1],
    [2004, np.nan, np.nan, np.nan, np.nan, np.nan, np.nan, np.nan],
]


class TestReading:
    """Tables in, columns of numbers out."""

    @pytest.mark.parametrize("form", [dict, pl.DataFrame, pl.LazyFrame, pd.DataFrame])
    def test_every_form_gives_the_same(self, form: Any) -> None:
        table = form(TABLE) if form is not pd.DataFrame else pl.DataFrame(TABLE).to_pandas()
        features = tacit.Catalogue([7, 8, 9], features=table).features
        assert features is not None
        assert [column.label or column.name for column in features.columns] == NAMES
        assert np.array_equal(features.values, VALUES, equal_nan=True)
        assert features.names == list(TABLE)

    def test_a_matrix_is_a_vector_for_each_item(self) -> None:
        made = ItemFeatures.of({"embedding": np.arange(6.0).reshape(3, 2)}, 3)
        assert made.values.tolist() == [[0, 1], [2, 3], [4, 5]]
        assert made.columns[1] == FeatureColumn("embedding", "vector", "1")

    def test_other_columns(self) -> None:
        """A category that is not known here is 0; a feature that is not here is missing."""
        made = ItemFeatures.of({"genre": ["war", None]}, 2)
        wanted = [FeatureColumn("genre", "category", label) for label in ("drama", "war")]
        found = made.aligned([*wanted, FeatureColumn("year", "number")])
        nan = np.nan
        assert np.array_equal(found, [[0, 1, nan], [nan, nan, nan]], equal_nan=True)

    @pytest.mark.parametrize(
        ("table", "message"),
        [
            (3, "features=int: expected a polars or pandas frame"),
            ({}, "features: no columns"),
            ({"year": [1, 2]}, "'year' has 2 values for 3 items"),
            ({"year": [1.0, np.inf, 2.0]}, "'year' has 1 infinite values"),
            ({"text": [[1.0], [1.0, 2.0], None]}, "vectors of different lengths"),
            ({"when": pl.Series([None, None, None], dtype=pl.Date)}, "of the type Date"),
            ({f"n{k}": [1, 2, 3] for k in range(1001)}, "1001 columns"),
        ],
    )
    def test_bad_tables_are_named(self, table: Any, message: str) -> None:
        with pytest.raises(tacit.DataError, match=message):
            tacit.Catalogue([1, 2, 3], features=table)

    def test_csv(self, tmp_path: Path) -> None:
        path = tmp_path / "items.csv"
        path.write_text('item,title,year,genre\n7,A,1999,drama|war\n8,B,,war\n9,"C, D",2004,\n')
        found = tacit.Catalogue.from_file(path, features=["genre", "year"])
        wanted = {name: TABLE[name] for name in ("genre", "year")}
        assert found == tacit.Catalogue([7, 8, 9], ["A", "B", "C, D"], features=wanted)  # type: ignore[arg-type]
        assert tacit.Catalogue.from_file(path).features is None
        with pytest.raises(tacit.DataError, match=r"no column 'price' .*features=\[...\]"):
            tacit.Catalogue.from_file(path, features=["price"])
        with pytest.raises(tacit.ConfigError, match="features='year': expected a list"):
            tacit.Catalogue.from_file(path, features="year")

    def test_parquet_has_vectors(self, tmp_path: Path) -> None:
        frame = pl.DataFrame({"item": [7, 8, 9], **TABLE})
        frame.write_parquet(tmp_path / "items.parquet")
        found = tacit.Catalogue.from_file(tmp_path / "items.parquet", features=list(TABLE))
        assert found == tacit.Catalogue([7, 8, 9], features=TABLE)  # type: ignore[arg-type]

    def test_equality_sees_features(self) -> None:
        one, other = (tacit.Catalogue([1], features={"year": [year]}) for year in (1, 2))  # type: ignore[arg-type]
        assert one != other
        assert one != tacit.Catalogue([1])
