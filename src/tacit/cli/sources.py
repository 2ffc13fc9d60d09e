"""Where ratings come from and where they are summed: files or a store, threads or a cluster."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from tacit.cli.progress import status, with_bar

if TYPE_CHECKING:
    from tacit.data.catalogue import Catalogue
    from tacit.data.ratings import Ratings
    from tacit.data.store import RatingsOrStore, Store
    from tacit.engines import Engine
    from tacit.models import Model

__all__ = ["Address", "EngineName", "Given", "Listed", "Source", "Where", "Workers", "learned"]

EngineName = Annotated[
    str | None,
    typer.Option(
        "--engine", help="Where rows are summed: threads, store or ray; what fits, if left out."
    ),
]
Address = Annotated[
    str | None, typer.Option(help="With --engine ray: the cluster, auto or HOST:PORT.")
]
Workers = Annotated[
    int | None, typer.Option(help="With --engine ray: how many processes hold rows.")
]


@dataclass(frozen=True)
class Where:
    """What the options say about where rows are summed."""

    engine: str | None
    threads: int | None
    address: str | None = None
    workers: int | None = None

    def check(self) -> None:
        """Refuse an engine that there is not, and options of another one."""
        from tacit.errors import ConfigError

        if self.engine not in (None, "threads", "store", "ray"):
            raise ConfigError(f"--engine {self.engine}: expected threads, store or ray")
        for name, value in (("--address", self.address), ("--workers", self.workers)):
            if value is not None and self.engine != "ray":
                raise ConfigError(f"{name} {value}: only --engine ray has it; give that too")


class Listed(NamedTuple):
    """A file of items, its column of titles, and its columns of features; each may be missing."""

    items: Path | None
    title: str | None
    feature: list[str] | None


@dataclass(frozen=True)
class Given:
    """What the options say about files of ratings; a store knows all of it."""

    rating_range: tuple[float, float] | None
    columns: tuple[str | None, str | None, str | None]
    duplicates: str
    listed: Listed
    unknown_items: str
    implicit: bool = False

    def check_features(self) -> None:
        """Refuse columns of items without the file that has them."""
        from tacit.errors import ConfigError

        named = [("--feature", one) for one in self.listed.feature or ()]
        named += [("--title-column", self.listed.title)] if self.listed.title is not None else []
        if named and self.listed.items is None:
            option, name = named[0]
            raise ConfigError(f"{option} {name}: it is a column of --items FILE; give that too")

    def catalogue(self) -> "Catalogue | None":
        """Read the public catalogue, if there is one."""
        from tacit.data.catalogue import Catalogue
        from tacit.errors import DataError

        if self.listed.items is None:
            return None
        read = partial(
            Catalogue.from_file,
            self.listed.items,
            title=self.listed.title,
            features=self.listed.feature or (),
        )
        try:
            return read(item=self.columns[1])
        except DataError as error:
            if self.columns[1] is None:
                raise
            with suppress(DataError):  # the list may have another name for it than the ratings
                return read()
            raise DataError(
                f"{error} Where it is called something else there than in the ratings, call it "
                f"item in {self.listed.items}."
            ) from None

    def read(self, paths: Sequence[Path]) -> "Ratings":
        """Read the files."""
        from tacit.data.ratings import Columns, Ratings

        return Ratings.from_file(
            paths,
            rating_range=self.rating_range,
            columns=Columns(*self.columns),
            duplicates=self.duplicates,  # type: ignore[arg-type]  # checked there
            catalogue=self.catalogue(),
            unknown_items=self.unknown_items,  # type: ignore[arg-type]  # checked there
            implicit=self.implicit,
        )

    def refuse_for(self, store: "Store") -> None:
        """Refuse what was laid down when the store was made."""
        from tacit.errors import ConfigError

        named: dict[str, Any] = {
            "--rating-range": self.rating_range,
            "--user-column": self.columns[0],
            "--item-column": self.columns[1],
            "--rating-column": self.columns[2],
            "--items": self.listed.items,
            "--title-column": self.listed.title,
            "--feature": self.listed.feature,
            "--implicit": self.implicit or None,
            "--duplicates": None if self.duplicates == "error" else self.duplicates,
            "--unknown-items": None if self.unknown_items == "error" else self.unknown_items,
        }
        for name, value in named.items():
            if value is not None:
                raise ConfigError(
                    f"{name}: the store {store.folder} was made with its own; leave the option "
                    "out, or make the store anew with tacit partition"
                )


@dataclass(frozen=True)
class Source:
    """The ratings that a command was given: files, or one store, which knows what options say."""

    ratings: list[str]
    given: Given
    store: "Store | None"

    @classmethod
    def of(cls, ratings: list[str], given: Given) -> "Source":
        """Open the store, if it is one that was given; no rating is read."""
        from tacit.data.store import Store, is_store
        from tacit.errors import ConfigError

        stores = [each for each in ratings if is_store(each)]
        if not stores:
            return cls(ratings, given, None)
        if len(ratings) > 1:
            raise ConfigError(f"{stores[0]}: a store is fitted by itself; give one, or files")
        store = Store.open(stores[0])
        given.refuse_for(store)
        return cls(ratings, given, store)

    @property
    def implicit(self) -> bool:
        """Whether these are interactions without ratings."""
        return self.given.implicit if self.store is None else self.store.implicit

    def reader(
        self, output: Path, *others: Path | None, checkpoint: Path | None, force: bool
    ) -> "Callable[[], RatingsOrStore]":
        """Refuse a model that cannot be written, or would be over an input; return what reads."""
        from tacit._outputs import Kind, Output, check_outputs
        from tacit.data.readers.registry import files_of
        from tacit.errors import ConfigError

        store, model = self.store, Output("--output", output, Kind.MODEL)
        if store is None:
            self.given.check_features()
        paths = files_of(self.ratings) if store is None else sorted(store.folder.iterdir())
        inputs = [*paths, *(path for path in others if path is not None)]
        check_outputs([model], inputs, checkpoint=checkpoint, force=force)
        if store is None:
            return lambda: self.given.read(paths)
        if output.resolve().is_relative_to(store.folder.resolve()):
            raise ConfigError(f"--output {output}: it lies in the store, which is private")
        return lambda: store


def learned(
    where: Where, read: "Callable[[], RatingsOrStore]", fit: "Callable[..., Model]"
) -> "Model":
    """Read the ratings, and call `fit(rows, engine=..., progress=...)` with a bar."""
    with status("reading the ratings"):
        rows = read()
    with _with_engine(where, rows) as engine:
        return with_bar(lambda bar: fit(rows, engine=engine, progress=bar), engine)


@contextmanager
def _with_engine(where: Where, rows: "RatingsOrStore") -> Iterator["Engine"]:
    """Make the engine that was asked for, or the one that fits; end what it has started."""
    from tacit.data.store import Store
    from tacit.engines import Ray, StoreEngine, ThreadEngine
    from tacit.errors import ConfigError

    stored = isinstance(rows, Store)
    if where.engine == "store" and not stored:
        raise ConfigError(
            "--engine store: it streams a store, and these are files; make one with tacit "
            "partition, or leave --engine out"
        )
    if where.engine == "ray":
        with Ray(address=where.address, workers=where.workers) as cluster:
            yield cluster
    elif where.engine == "store" or (where.engine is None and stored):
        yield StoreEngine(where.threads)
    else:
        yield ThreadEngine(where.threads)
