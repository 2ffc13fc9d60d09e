"""What is fuzzed: sound files of every kind that is read, how each is read, and what may come out.

No sound file holds a SECRET but as a user id, an item id, a title or a rating, so that none of
them may be in a message.
"""

import gzip
import io
import json
import os
import shutil
import time
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import polars as pl

import tacit
from tacit.accounting.certificate import Certificate
from tacit.data.readers.registry import read_own_ratings
from tacit.errors import ConfigError, DataError, ModelFileError, SignatureError, TacitError
from tests.fuzz.mutators import mutated, mutated_header, mutated_json

STARS = (0.5, 5.0)
SECRETS = ("secretann", "secretbob", "secrettea", "secretmilk", "4.4375", "707070707")


FORMAT_1 = Path(__file__).parents[1] / "files" / "format-1.tacit"


class Sound(NamedTuple):
    """A file that can be read, and the places where damage is most likely to matter."""

    name: str
    content: bytes
    hot: tuple[tuple[int, int], ...] = ()
    vary: Callable[[bytes, int], bytes] | None = None
    """Damage that keeps the form of the file, for every second mutant."""

    def mutant(self, number: int) -> bytes:
        """The mutant of this number."""
        if self.vary is not None and number // 7 % 2:
            return self.vary(self.content, number)
        return mutated(self.content, number, self.hot)


@dataclass(frozen=True)
class Target:
    """Something that reads files: whatever is wrong with one, only some errors may come out."""

    sound: Callable[[], list[Sound]]
    read: Callable[[Path], object]
    errors: tuple[type[TacitError], ...]


def ratings_frame(users: int = 12, items: int = 9) -> pl.DataFrame:
    """Ratings whose ids and values are found again in any message that quotes them."""
    rng = np.random.default_rng(0)
    pairs = [(u, i) for u in range(users) for i in range(items) if (u + i) % 2]
    names = ["secretann", "secretbob"]
    return pl.DataFrame(
        {
            "user": [f"{names[u % 2]}{u}" for u, _ in pairs],
            "item": [f"{'secrettea' if i % 2 else 'secretmilk'}{i}" for _, i in pairs],
            "rating": [float(rng.choice([4.4375, 1.0, 2.5])) for _ in pairs],
        }
    )


def numbered_frame() -> pl.DataFrame:
    """The same with whole numbers for ids."""
    frame = ratings_frame()
    return frame.with_columns(
        pl.col("user").rank("dense").cast(pl.Int64) + 707070707000,
        pl.col("item").rank("dense").cast(pl.UInt32),
        pl.col("rating").cast(pl.Float32),
    )


def _text_files() -> list[Sound]:
    frame, found = ratings_frame(), []
    for name, sign in (("r.csv", ","), ("r.tsv", "\t"), ("r.txt", "|"), ("s.csv", ";")):
        found.append(Sound(name, frame.write_csv(separator=sign).encode(), ((0, 40),)))
    lines = "\n".join("::".join(map(str, row)) for row in numbered_frame().iter_rows())
    quoted = frame.write_csv(quote_style="always")
    # A kind that is not read: one JSON object a line.
    return [
        *found,
        Sound("r.dat", lines.encode()),
        Sound("quoted.csv", quoted.encode()),
        Sound("windows.csv", b"\xef\xbb\xbf" + frame.write_csv().replace("\n", "\r\n").encode()),
        Sound("r.jsonl", frame.write_ndjson().encode()),
        Sound("numbers.csv", numbered_frame().write_csv().encode()),
    ]


def parquet_of(frame: pl.DataFrame, **options: Any) -> bytes:
    """A Parquet file as polars writes it."""
    buffer = io.BytesIO()
    frame.write_parquet(buffer, **options)
    return buffer.getvalue()


def arrow_parquet_of(frame: pl.DataFrame, **options: Any) -> bytes:
    """A Parquet file as pyarrow writes it."""
    import pyarrow.parquet as pq

    buffer = io.BytesIO()
    pq.write_table(frame.to_arrow(), buffer, **options)
    return buffer.getvalue()


def _parquet_files() -> list[Sound]:
    """Every encoding of the usual writers; whole numbers and texts; with and without nulls."""
    texts, numbers = ratings_frame(), numbered_frame()
    gaps = numbers.with_columns(pl.when(pl.col("rating") != 1).then(pl.col("rating")))
    nested = numbers.with_columns(tags=pl.concat_list("item", "item"))
    long = pl.concat([numbers] * 40)
    packed = {"user": "DELTA_BINARY_PACKED", "item": "DELTA_BINARY_PACKED", "rating": "PLAIN"}
    shared = {"user": "DELTA_BYTE_ARRAY", "item": "DELTA_LENGTH_BYTE_ARRAY", "rating": "PLAIN"}
    plain = {"compression": "none", "use_dictionary": False}
    contents = [
        parquet_of(numbers),
        parquet_of(texts),
        parquet_of(numbers, compression="uncompressed", statistics=False),
        parquet_of(texts, compression="snappy", row_group_size=20),
        parquet_of(gaps, compression="uncompressed"),
        parquet_of(long, compression="lz4", data_page_size=256),
        arrow_parquet_of(numbers, compression="none"),
        arrow_parquet_of(texts, **plain),
        arrow_parquet_of(gaps, data_page_version="2.0", compression="none"),
        arrow_parquet_of(long, data_page_version="2.0", data_page_size=100, row_group_size=300),
        arrow_parquet_of(numbers, column_encoding=packed, **plain),
        arrow_parquet_of(texts, column_encoding=shared, **plain),
        arrow_parquet_of(numbers, use_byte_stream_split=["rating"], **plain),
        arrow_parquet_of(nested, compression="none", write_page_index=True),
        arrow_parquet_of(long, compression="gzip", use_dictionary=["item"]),
    ]
    return [
        Sound(f"r{k}.parquet", content, _parquet_places(content))
        for k, content in enumerate(contents)
    ]


def _parquet_places(content: bytes) -> tuple[tuple[int, int], ...]:
    """The footer, its length, and the first bytes of columns, where page headers are."""
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    starts = range(4, footer, max(1, footer // 6))
    return ((footer, len(content) - 8), (footer, len(content)), *((s, s + 60) for s in starts))


def arrow_of(frame: pl.DataFrame, **options: Any) -> bytes:
    """An Arrow IPC file as polars writes it."""
    buffer = io.BytesIO()
    frame.write_ipc(buffer, **options)
    return buffer.getvalue()


def _packed_files() -> list[Sound]:
    """Archives, Arrow files and text of another encoding."""
    text, numbers = ratings_frame().write_csv(), numbered_frame()
    box = io.BytesIO()
    with zipfile.ZipFile(box, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("ratings.csv", text)
    arrows = [arrow_of(numbers), arrow_of(numbers, compression="lz4")]
    arrows += [arrow_of(ratings_frame(), compression="zstd")]
    return [
        Sound("r.csv.gz", gzip.compress(text.encode(), mtime=0), ((0, 20),)),
        Sound("r.zip", box.getvalue(), ((0, 40), (len(box.getvalue()) - 90, len(box.getvalue())))),
        Sound("wide.csv", text.encode("utf-16"), ((0, 8),)),
        *(
            Sound(f"r{k}.arrow", content, ((0, 400), (len(content) // 2, len(content))))
            for k, content in enumerate(arrows)
        ),
    ]


def _model_files() -> list[Sound]:
    from safetensors.numpy import save

    from tests.conftest import ratings_for

    configs = [
        None,
        tacit.FrankWolfe(rounds=3),
        tacit.Cleansing(),
        tacit.SVD(),
        tacit.ALS(rounds=2),
    ]
    found = []
    for k, config in enumerate(configs):
        model = tacit.fit(ratings_for(0), config, epsilon=5.0)
        content = saved(model)
        size = int.from_bytes(content[:8], "little")
        found.append(Sound(f"m{k}.tacit", content, ((0, 8 + size),), mutated_header))
    found.append(Sound("other.tacit", save({"rule.offsets": np.zeros(9)}, {"tacit": "{}"})))
    return found


def saved(model: tacit.Model) -> bytes:
    """The bytes of a model's file."""
    with TemporaryDirectory() as folder:
        model.save(Path(folder) / "m.tacit")
        return (Path(folder) / "m.tacit").read_bytes()


def _own_files() -> list[Sound]:
    rows = [("film-02", 4.4375), ("film-05", 1.5), ("secretmilk", 2.0)]
    frame = pl.DataFrame(rows, schema=["item", "rating"], orient="row")
    pickup = frame.write_csv().encode()
    return [
        Sound("own.csv", pickup),
        Sound("own.tsv", pickup.replace(b",", b"\t")),
        Sound("own.parquet", parquet_of(frame), _parquet_places(parquet_of(frame))),
        Sound("own.dat", b"film-02::4.4375\nfilm-05::1.5"),
    ]


def _experiments() -> list[Sound]:
    folder = Path(__file__).parents[2] / "experiments"
    return [Sound(path.name, path.read_bytes()) for path in sorted(folder.glob("*.toml"))]


def _certificates() -> list[Sound]:
    from tests.conftest import ratings_for

    model = tacit.fit(ratings_for(0), epsilon=1.0)
    content = json.dumps(model.certificate.to_json()).encode()
    return [Sound("c.json", content, (), mutated_json)]


@cache
def _signed() -> tuple[Path, Any]:
    """A folder with a signed model and its keys; it goes when its second part does."""
    from tacit.models import signing

    kept = TemporaryDirectory(prefix="tacit-fuzz-")
    folder = Path(kept.name)
    shutil.copy(FORMAT_1, folder / "m.tacit")
    signing.new_key(folder / "key.pem")
    signing.sign(folder / "m.tacit", folder / "key.pem")
    return folder, kept


def _signature_files() -> list[Sound]:
    content = (_signed()[0] / "m.tacit.sig").read_bytes()
    return [Sound("m.sig", content), Sound("n.sig", content, (), mutated_json)]


def _key_files() -> list[Sound]:
    names = ("key.pem", "key.public.pem")
    return [Sound(name, (_signed()[0] / name).read_bytes()) for name in names]


def read_signature(path: Path) -> None:
    """Check a signature; whatever passes must say what the sound one says."""
    from tacit.models import signing

    folder, _ = _signed()
    sound = signing.verify(folder / "m.tacit", folder / "key.public.pem")
    found = signing.verify(folder / "m.tacit", folder / "key.public.pem", signature=path)
    if found != sound:
        raise ArithmeticError("a signature passes that was not made")


def read_key(path: Path) -> None:
    """Use a key as what it is; a damaged public key may be another one, and then does not fit."""
    from tacit.models import signing

    folder, _ = _signed()
    if path.name == "key.public.pem":
        signing.verify(folder / "m.tacit", path)
    else:
        signing.sign(folder / "m.tacit", path, output=path.with_name("again.sig"))


def read_ratings(path: Path) -> None:
    """Read ratings in every way there is."""
    tacit.Ratings.from_file(path, rating_range=STARS, duplicates="last")


def read_model(path: Path) -> None:
    """Load a model and let it do all that it can; what cannot be predicted is a TacitError."""
    model = tacit.load(path)
    _ = (repr(model), model.verify(), model.certificate.text(), model.explain())
    for own in ({}, {"film-02": model.rating_range[0]}):
        scores = model.predict(own)
        if not np.isfinite(scores).all():
            raise ArithmeticError("a model that loads gives scores that are no numbers")


def read_own(path: Path) -> None:
    """Read own ratings and use them."""
    own_model().predict(read_own_ratings(path))


_MODEL: list[tacit.Model] = []


def own_model() -> tacit.Model:
    """A model to use own ratings with, fitted once in a process."""
    from tests.conftest import ratings_for

    if not _MODEL:
        _MODEL.append(tacit.fit(ratings_for(0), epsilon=5.0))
    return _MODEL[0]


def read_experiment(path: Path) -> None:
    """Parse an experiment, as the runner gets the text of its file."""
    from tacit.research.experiments.reading import parse_experiment

    parse_experiment("x", path.read_text(errors="replace"))


def read_certificate(path: Path) -> None:
    """Read a certificate and check it, if it is JSON at all."""
    try:
        value = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        raise ModelFileError("not JSON, which is for whoever reads the file") from None
    certificate = Certificate.from_json(value)
    certificate.verify()
    certificate.text()


SUBJECTS = {
    "text": Target(_text_files, read_ratings, (DataError,)),
    "parquet": Target(_parquet_files, read_ratings, (DataError,)),
    "packed": Target(_packed_files, read_ratings, (DataError,)),
    "models": Target(_model_files, read_model, (ModelFileError,)),
    "own": Target(_own_files, read_own, (DataError,)),
    "experiments": Target(_experiments, read_experiment, (ConfigError,)),
    "signatures": Target(_signature_files, read_signature, (SignatureError,)),
    "keys": Target(_key_files, read_key, (ConfigError, SignatureError)),
    "certificates": Target(_certificates, read_certificate, (ModelFileError,)),
}


def _twin(work: Callable[[], object]) -> Target:
    """A subject that does something terrible with its fifth mutant, which must be noticed."""
    sound = [Sound("x", b"x" * 100)]
    calls = iter(range(1000))
    return Target(lambda: sound, lambda _: work() if next(calls) == 5 else None, (DataError,))


def _leak() -> None:
    raise DataError(f"line 3: {SECRETS[0]}")


TWINS = {
    "ends": _twin(os.abort),
    "hangs": _twin(lambda: time.sleep(600)),
    "fills": _twin(lambda: bytearray(64 << 30)),
    "raises": _twin(lambda: {}["x"]),
    "tells": _twin(_leak),
}
"""What the harness must notice."""
