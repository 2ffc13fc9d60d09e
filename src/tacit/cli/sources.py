"""Where ratings are read from (files or a store), and the engine that sums them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli.options import (
    FeatureNames,
    Implicit,
    Layout,
    OptionGroup,
    RatingRange,
    TitleColumn,
)
from tacit.cli.progress import status, with_bar
from tacit.errors import ConfigError, DataError, UnknownItemsError

if TYPE_CHECKING:
    from tacit.data.build import Rules
    from tacit.data.catalogue import Catalogue
    from tacit.data.ratings import Ratings
    from tacit.data.store import RatingsOrStore, Store
    from tacit.engines import Engine
    from tacit.models import Model


@dataclass(frozen=True)
class Where(OptionGroup):
    """Where rows are summed."""

    threads: Annotated[int | None, typer.Option(help="Threads; all cores if left out.")] = None
    engine: Annotated[
        str | None,
        typer.Option(help="Where rows are summed: threads, store or ray; what fits, if left out."),
    ] = None
    address: Annotated[
        str | None, typer.Option(help="With --engine ray: the cluster, auto or HOST:PORT.")
    ] = None
    workers: Annotated[
        int | None, typer.Option(help="With --engine ray: how many processes hold rows.")
    ] = None

    def check(self) -> None:
        """Refuse an engine that there is not, and options of another one."""
        if self.engine not in (None, "threads", "store", "ray"):
            raise ConfigError(f"--engine {self.engine}: expected threads, store or ray")
        for name, value in (("--address", self.address), ("--workers", self.workers)):
            if value is not None and self.engine != "ray":
                raise ConfigError(f"{name} {value}: only --engine ray has it; give that too")


@dataclass(frozen=True)
class _Public(OptionGroup):
    """What is public of the ratings: their range, and the list of items."""

    rating_range: RatingRange = None
    items: Annotated[
        Path | None, typer.Option(help="Public catalogue: a file with columns item, title.")
    ] = None
    title_column: TitleColumn = None
    feature: FeatureNames = None
    unknown_items: Annotated[
        str,
        typer.Option(help="error, or drop: leave out ratings of items that --items does not list."),
    ] = "error"


@dataclass(frozen=True)
class Given(Layout, _Public):
    """What the options say about files of ratings; a store knows all of it."""

    @property
    def is_implicit(self) -> bool:
        """Whether these are interactions without ratings."""
        return False

    def check_features(self) -> None:
        """Refuse columns of items without the file that has them."""
        named = [("--feature", one) for one in self.feature or ()]
        named += [("--title-column", self.title_column)] if self.title_column is not None else []
        if named and self.items is None:
            option, name = named[0]
            raise ConfigError(f"{option} {name}: it is a column of --items FILE; give that too")

    def catalogue(self) -> "Catalogue | None":
        """Read the public catalogue, if there is one."""
        from tacit.data.catalogue import Catalogue

        if self.items is None:
            return None
        read = partial(
            Catalogue.from_file, self.items, title=self.title_column, features=self.feature or ()
        )
        try:
            return read(item=self.item_column)
        except DataError as error:
            if self.item_column is None:
                raise
            with suppress(DataError):  # the list may have another name for it than the ratings
                return read()
            raise DataError(
                f"{error} Where it is called something else there than in the ratings, call it "
                f"item in {self.items}."
            ) from None

    def for_reading(self) -> dict[str, Any]:
        """Return it as `Ratings.from_file` and `partition` take it; the catalogue is read."""
        return {
            "rating_range": self.rating_range,
            "columns": self.columns,
            "duplicates": self.duplicates,
            "catalogue": self.catalogue(),
            "unknown_items": self.unknown_items,
            "implicit": self.is_implicit,
        }

    def refuse_for(self, store: "Store") -> None:
        """Refuse what was laid down when the store was made."""
        for option in fields(self):
            if getattr(self, option.name) != option.default:
                raise ConfigError(
                    f"--{option.name.replace('_', '-')}: the store {store.folder} was made with "
                    "its own; leave the option out, or make the store anew with tacit partition"
                )


@dataclass(frozen=True)
class GivenOrImplicit(Given):
    """The same, for a verb that takes interactions without ratings too."""

    implicit: Implicit = False

    @property
    def is_implicit(self) -> bool:
        """Whether these are interactions without ratings."""
        return self.implicit


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
        return self.given.is_implicit if self.store is None else self.store.implicit

    def reader(
        self, output: Path, *others: Path | None, checkpoint: Path | None, force: bool
    ) -> "Callable[[], RatingsOrStore]":
        """Refuse a model that cannot be written, or would be over an input; return what reads."""
        from tacit._outputs import Kind, Output, check_outputs
        from tacit.data.ratings import Ratings
        from tacit.data.readers.registry import files_of

        store, model = self.store, Output("--output", output, Kind.MODEL)
        if store is None:
            self.given.check_features()
        paths = files_of(self.ratings) if store is None else sorted(store.folder.iterdir())
        inputs = [*paths, *(path for path in others if path is not None)]
        check_outputs([model], inputs, checkpoint=checkpoint, force=force)
        if store is None:
            return lambda: Ratings.from_file(paths, **self.given.for_reading())
        if output.resolve().is_relative_to(store.folder.resolve()):
            raise ConfigError(
                f"--output {output}: it is inside the store, which is private; give another folder"
            )
        return lambda: store


def own_ratings(model: "Model", paths: "list[Path]", layout: Layout) -> "tuple[Ratings, int]":
    """Read what users predict from, and count ratings of items that the model does not have."""
    from tacit.data.ratings import Ratings, columns_of
    from tacit.data.readers.registry import read_file
    from tacit.models.bulk import rules_for

    roles, rules = columns_of(layout.columns, model.implicit), rules_for(model, layout.duplicates)

    def read(rules: "Rules") -> Ratings:
        return Ratings.of_tables([read_file(path, roles) for path in paths], rules)

    try:
        return read(rules), 0
    except UnknownItemsError as error:  # as after --top-items
        return read(replace(rules, unknown_items="drop")), error.rows


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
