"""Model files: safetensors with the certificate in the header. No pickle, nothing executable.

Format 2. The header's metadata has one entry, `tacit`, a JSON object: `format`, `digest` (see
`tacit.models.digest`), `version` (of tacit, that wrote it), `rule` (kind and settings),
`rating_range`, `catalogue` (public or not), `certificate`, `releases` (their number). Arrays:
`rule.*` in float64; `items.numbers` (int64 or uint64) or `items.text` + `items.ends`;
`titles.text` + `titles.ends`. Texts are UTF-8, one after another, with the byte at which each ends.
Optional: `features.values` in float64, items by columns, NaN where a value is missing, with the
name, kind and label of each column in `catalogue.features`; and in `rule.*` what was measured of
items. A reader that does not know them makes the same predictions without.

Format 1 is the same without `digest`, and is still read. The digest has a format of its own because
an optional field would be no check: damage to the field's name would switch it off. A tacit that
knows format 1 only refuses format 2, and says that a newer one may read it.
"""

import json
from importlib.metadata import version
from os import PathLike
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import Any, get_args

import numpy as np
import polars as pl
from numpy.typing import NDArray
from safetensors import safe_open
from safetensors.numpy import save as to_bytes

from tacit._atomic import reason_of, write_durably
from tacit._damaged import UNSOUND
from tacit._outputs import Kind as FileKind
from tacit._outputs import Output, check_replaceable
from tacit._resources import physical_memory
from tacit._validate import path_of
from tacit.accounting.certificate import Certificate
from tacit.data.catalogue import Catalogue
from tacit.data.features import FeatureColumn, ItemFeatures, Kind
from tacit.data.tables import READER_ERRORS
from tacit.errors import ConfigError, ModelFileError, TacitError
from tacit.models.digest import BLANK, check_digest, sealed
from tacit.models.model import Model
from tacit.models.registry import rule_of_kind

_FORMAT = "tacit-model/2"
_WITHOUT_DIGEST = "tacit-model/1"
_LARGEST = 8 * 2**30
_LARGEST_HEADER = 2**24
Arrays = dict[str, NDArray[Any]]


def save(model: Model, path: str | PathLike[str], *, overwrite: bool = False) -> None:
    """Write a model to a file, whole or not at all.

    Raises:
        ModelFileError: the file cannot be written, or there is one that is no model and overwrite
            is false.
    """
    try:
        target = Output("path", path_of("path", path), FileKind.MODEL)
        check_replaceable(target, overwrite=overwrite)
    except ConfigError as error:
        raise ModelFileError(str(error)) from None
    arrays, settings = model.rule.parts()
    tensors: Arrays = {f"rule.{name}": np.ascontiguousarray(a) for name, a in arrays.items()}
    tensors |= _catalogue_arrays(model.catalogue)
    facts = {
        "format": _FORMAT,
        "digest": BLANK,  # before any text of others, so that it is the first BLANK of the file
        "version": version("tacit"),
        "rule": {"kind": model.rule.kind, "settings": settings},
        "rating_range": list(model.rating_range),
        "catalogue": _catalogue_facts(model.catalogue),
        "certificate": model.certificate.to_json(),
        "releases": model.releases,
    }
    content = sealed(to_bytes(tensors, {"tacit": json.dumps(facts)}))
    try:
        write_durably(Path(path), content)
    except OSError as error:
        raise ModelFileError(f"model file {path} cannot be written: {reason_of(error)}") from None


def load(path: str | PathLike[str]) -> Model:
    """Read a model; whatever is wrong with the file, the error is a ModelFileError."""
    if not isinstance(path, str | PathLike):
        raise ModelFileError(f"path={type(path).__name__}: expected the name of a model file")
    try:
        _check_size(Path(path))
        arrays, facts = _read(Path(path))
        return _model(arrays, facts)
    except OSError as error:
        raise ModelFileError(f"model file {path} cannot be read: {reason_of(error)}") from None
    except TacitError as error:
        raise ModelFileError(f"{path} is not a valid model file: {error}") from None
    except (*UNSOUND, *READER_ERRORS) as error:
        what = type(error).__name__
        raise ModelFileError(
            f"{path} is not a valid model file: it is cut short or damaged ({what}); copy it anew"
        ) from None


def _check_size(path: Path) -> None:
    """Refuse what no model is, before any of it is in memory: it would take about its size."""
    about = path.stat()
    if not (S_ISREG(about.st_mode) or S_ISDIR(about.st_mode)):
        raise ModelFileError("it is a pipe or a device; expected a file")
    if about.st_size > min(_LARGEST, physical_memory() / 3):
        raise ModelFileError("it is larger than any model, or than this machine can hold")
    with path.open("rb") as file:
        first = file.read(8)
    if first.isascii() and first.decode("ascii").isprintable() and len(first) == 8:
        raise ModelFileError("it is text; give a file that `tacit fit` wrote (.tacit)")
    if int.from_bytes(first, "little") > _LARGEST_HEADER:
        raise ModelFileError(
            "it does not begin as a model does; give a file that `tacit fit` wrote (.tacit)"
        )


def _read(path: Path) -> tuple[Arrays, dict[str, Any]]:
    with safe_open(path, framework="numpy") as file:
        facts = json.loads((file.metadata() or {})["tacit"])
        if facts.get("format") == _FORMAT:
            check_digest(path, facts.get("digest"))
        elif facts.get("format") != _WITHOUT_DIGEST or "digest" in facts:
            raise ModelFileError(f"expected the format {_FORMAT!r}; a newer tacit may read it")
        return {name: file.get_tensor(name) for name in file.keys()}, facts  # noqa: SIM118


def _model(arrays: Arrays, facts: dict[str, Any]) -> Model:
    lo, hi = (float(end) for end in facts["rating_range"])
    if not (np.isfinite(lo) and np.isfinite(hi) and lo < hi):
        raise ModelFileError("impossible rating range")
    parts = {
        name.removeprefix("rule."): np.ascontiguousarray(array)
        for name, array in arrays.items()
        if name.startswith("rule.")
    }
    if any(array.dtype != np.float64 for array in parts.values()):
        raise ModelFileError("the arrays of the local rule are not of 64-bit floats")
    catalogue = _catalogue(arrays, facts["catalogue"])
    if parts["offsets"].shape != (len(catalogue),):
        raise ModelFileError("catalogue and local rule have different numbers of items")
    rule = rule_of_kind(facts["rule"]["kind"], parts, facts["rule"]["settings"])
    certificate = Certificate.from_json(facts["certificate"])
    releases, digest = int(facts["releases"]), facts.get("digest")
    return Model(rule, catalogue, (lo, hi), certificate, releases, digest)


def _catalogue_arrays(catalogue: Catalogue) -> Arrays:
    arrays = {}
    if catalogue.ids.dtype.is_integer():
        arrays["items.numbers"] = catalogue.ids.to_numpy()
    else:
        arrays |= _text_arrays("items", catalogue.ids)
    if catalogue.titles is not None:
        arrays |= _text_arrays("titles", catalogue.titles)
    if catalogue.features is not None:
        arrays["features.values"] = np.ascontiguousarray(catalogue.features.values)
    return arrays


def _catalogue_facts(catalogue: Catalogue) -> dict[str, Any]:
    facts: dict[str, Any] = {"public": catalogue.public}
    if catalogue.features is not None:
        facts["features"] = [list(column) for column in catalogue.features.columns]
    return facts


def _catalogue(arrays: Arrays, facts: dict[str, Any]) -> Catalogue:
    if "items.numbers" in arrays:
        numbers = arrays["items.numbers"]
        if numbers.dtype.kind not in "iu" or numbers.ndim != 1:
            raise ModelFileError("item ids are not whole numbers")
        ids = pl.Series("item", numbers)
    else:
        ids = _texts("items", arrays)
    titles = _texts("titles", arrays) if "titles.text" in arrays else None
    features = _features(arrays, facts["features"]) if "features" in facts else None
    return Catalogue(ids, titles, facts["public"] is True, features)


def _features(arrays: Arrays, columns: Any) -> ItemFeatures:
    """Read features of items, trusting none of it."""
    values = arrays["features.values"]
    made = tuple(FeatureColumn(*map(str, column)) for column in columns)  # type: ignore[arg-type]
    known = all(column.kind in get_args(Kind) for column in made)
    if values.dtype != np.float64 or np.isinf(values).any() or not (made and known):
        raise ModelFileError("the features of items are damaged")
    if values.ndim != 2 or values.shape[1] != len(made):
        raise ModelFileError("the features of items do not fit together")
    return ItemFeatures(made, values)


def _text_arrays(name: str, texts: pl.Series) -> Arrays:
    encoded = [text.encode() for text in texts.cast(pl.String).fill_null("").to_list()]
    joined = np.frombuffer(b"".join(encoded), dtype=np.uint8)
    ends = np.cumsum([len(text) for text in encoded], dtype=np.int64)
    return {f"{name}.text": joined, f"{name}.ends": ends}


def _texts(name: str, arrays: Arrays) -> pl.Series:
    text, ends = arrays[f"{name}.text"], arrays[f"{name}.ends"]
    edges = np.concatenate([[0], ends])
    if text.dtype != np.uint8 or np.any(np.diff(edges) < 0) or edges[-1] != text.size:
        raise ModelFileError(f"the texts of {name!r} are damaged")
    content = text.tobytes()
    pairs = zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)
    return pl.Series(name, [content[a:b].decode() for a, b in pairs], dtype=pl.String)
