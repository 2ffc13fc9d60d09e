"""The named datasets: source, licence, files, and the published counts.

Counts of items are those of the published list of items, rated or not. MovieLens 10M says 71,567
users: so high go its user ids, but 69,878 of them have ratings, and those are counted here.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from tacit._validate import one_of, refuse
from tacit.datasets.spec import Counts, Dataset, Download, Member

MAX_RATINGS: Final = 80
"""xi: at most so many ratings a user in the paper's private experiments, except for Jester."""

PAPER_RANGE: Final = (0.0, 5.0)
"""What the paper rescales Jester and Yahoo! Music to."""

PAPER_TOPS: Final = (400, 900)
"""How many of the most rated items the paper keeps of MovieLens 10M, Netflix and Yahoo! Music."""

_MEGABYTE: Final = 10**6

_JESTER_FILES: Final = (
    "3ca13556845030a9bfa6953e9dbaf0365380f7f7c465a4604eb876abb8ae8de0",
    "0747db68a3cc122251005ac0d289a448e99f2ad8531d2549b6110ed154772d6b",
    "4c092d1963b9ad0ea69d8bd863c533276519bd61d43ee95770e9f75747eac3fd",
)
_JESTER_ARCHIVES: Final = (
    "cb7841756ded125b15f3d95c9f8241224065e96354c132a46ae4214deeab7615",
    "4d312fd824d8c8cb2c9c952a7b1fb7c00d1f5fd3ece370f7285aa701d371748b",
    "7f548d3762d3506cf7cd37d8cb9e3adb67984a7da7aa2d2096d5e0b1b884758d",
)


class _Lens(NamedTuple):
    """What sets one MovieLens dataset apart: sizes in megabytes are more than it can have."""

    size: str
    counts: Counts
    lowest: float
    files: tuple[str, str]
    megabytes: tuple[int, int]
    sha256: str | None


_CSV: Final = ("ratings.csv", "movies.csv")
_DAT: Final = ("ratings.dat", "movies.dat")
_LENSES: Final = (
    _Lens(
        "100K",
        Counts(943, 1_682, 100_000),
        1.0,
        ("u.data", "u.item"),
        (4, 1),
        "50d2a982c66986937beb9ffb3aa76efe955bf3d5c6b761f4e3a7cd717c6a3229",
    ),
    _Lens(
        "1M",
        Counts(6_040, 3_883, 1_000_209),
        1.0,
        _DAT,
        (50, 1),
        "a6898adb50b9ca05aa231689da44c217cb524e7ebd39d264c56e2832f2c54e20",
    ),
    _Lens("10M", Counts(69_878, 10_681, 10_000_054), 0.5, _DAT, (500, 2), None),
    _Lens(
        "20M",
        Counts(138_493, 27_278, 20_000_263),
        0.5,
        _CSV,
        (1_000, 5),
        "96f243c338a8665f6bcc89c53edf6ee39162a846940de6b7c8c48aeada765ff3",
    ),
    _Lens(
        "25M",
        Counts(162_541, 62_423, 25_000_095),
        0.5,
        _CSV,
        (1_400, 10),
        "8b21cfb7eb1706b4ec0aac894368d90acf26ebdfb6aced3ebd4ad5bd1eb9c6aa",
    ),
    _Lens(
        "32M",
        Counts(200_948, 87_585, 32_000_204),
        0.5,
        _CSV,
        (1_800, 15),
        "e4a68655d7386b8f95f2f2424b2ff975dfdd15ffd59e0d864a14dca43e99d6ee",
    ),
)


def _synthetic(items: int) -> Dataset:
    """The rank-one matrix of the paper, at one of its two sizes."""
    return Dataset(
        name=f"synthetic-{items}",
        title=f"Synthetic-{items}",
        page="",
        licence="none needed: synthetic, drawn by tacit with seed 0",
        counts=Counts(500_000, items, 500_000 * MAX_RATINGS),
        scale=(-1.0, 1.0),
        reader="rank_one",
    )


def _jester() -> Dataset:
    """Jester 1: three archives of one spreadsheet each."""
    members = tuple(
        Member(
            f"jester-data-{k}.xls",
            20 * _MEGABYTE,
            (f"jester-data-{k}.zip", f"jester_dataset_1_{k}.zip"),
            sha256,
        )
        for k, sha256 in enumerate(_JESTER_FILES, 1)
    )
    place = "https://goldberg.berkeley.edu/jester-data/"
    downloads = tuple(
        Download(f"jester-data-{k}.zip", f"{place}jester-data-{k}.zip", sha256)
        for k, sha256 in enumerate(_JESTER_ARCHIVES, 1)
    )
    return Dataset(
        name="jester",
        title="Jester 1",
        page=place,
        licence="free for research; cite Goldberg, Roeder, Gupta and Perkins, Eigentaste (2001)",
        counts=Counts(73_421, 100, 4_136_360),
        scale=(-10.0, 10.0),
        reader="jester",
        members=members,
        downloads=downloads,
        rating_range=PAPER_RANGE,
        max_ratings=None,
    )


def _movielens(lens: _Lens) -> Dataset:
    """One of the MovieLens datasets of fixed size."""
    size = lens.size.lower()
    archive = f"ml-{size}.zip"
    address = f"https://files.grouplens.org/datasets/movielens/{archive}"
    return Dataset(
        name=f"movielens-{size}",
        title=f"MovieLens {lens.size}",
        page=f"https://grouplens.org/datasets/movielens/{size}/",
        licence="research use, no redistribution, no commercial use unasked; cite Harper and "
        "Konstan, The MovieLens Datasets (2015)",
        counts=lens.counts,
        scale=(lens.lowest, 5.0),
        reader="movielens",
        members=tuple(
            Member(name, most * _MEGABYTE, (archive,))
            for name, most in zip(lens.files, lens.megabytes, strict=True)
        ),
        downloads=(Download(archive, address, lens.sha256),),
    )


def _netflix() -> Dataset:
    """The training set of the Netflix Prize."""
    archives = ("netflix-prize-data.zip", "archive.zip")
    return Dataset(
        name="netflix",
        title="Netflix Prize",
        page="https://www.kaggle.com/datasets/netflix-inc/netflix-prize-data",
        licence="research use only, no redistribution, no commercial use; acknowledge Netflix",
        counts=Counts(480_189, 17_770, 100_480_507),
        scale=(1.0, 5.0),
        reader="grouped",
        members=tuple(
            Member(f"combined_data_{k}.txt", 1_000 * _MEGABYTE, archives) for k in range(1, 5)
        ),
        folders=("training_set", "download/training_set"),
        how_to_get="Log in there, agree to the terms, download, and put the archive or the four "
        "combined_data files into that folder; or the older training_set folder with a file "
        "mv_0000001.txt and so on for each film",
    )


def _yahoo_music() -> Dataset:
    """Yahoo! Music as in the paper: Webscope C15, track 1 of the KDD Cup 2011."""
    return Dataset(
        name="yahoo-music",
        title="Yahoo! Music C15",
        page="https://webscope.sandbox.yahoo.com/catalog.php?datatype=c",
        licence="research at universities only, after signing Yahoo's data sharing agreement",
        counts=Counts(1_000_990, 624_961, 256_804_235),
        scale=(0.0, 100.0),
        reader="grouped",
        members=(
            Member("trainIdx1.txt", 12_000 * _MEGABYTE),
            Member("validationIdx1.txt", 500 * _MEGABYTE),
        ),
        how_to_get="Ask for C15 there with a university's address, sign, unpack, and put "
        "trainIdx1.txt and validationIdx1.txt (track 1) into that folder",
        rating_range=PAPER_RANGE,
    )


def _yahoo_songs() -> Dataset:
    """Yahoo! Music R2: songs alone, in ten pairs of files; the paper does not use it."""
    names = [f"{part}_{k}.txt" for part in ("train", "test") for k in range(10)]
    return Dataset(
        name="yahoo-songs",
        title="Yahoo! Music R2",
        page="https://webscope.sandbox.yahoo.com/catalog.php?datatype=r",
        licence="research at universities only, after signing Yahoo's data sharing agreement",
        counts=Counts(1_823_179, 136_736, 717_872_016),
        scale=(1.0, 5.0),
        reader="yahoo_songs",
        members=tuple(Member(name, 4_000 * _MEGABYTE) for name in names),
        how_to_get="Ask for R2 there with a university's address, sign, unpack, and put "
        "train_0.txt to train_9.txt and test_0.txt to test_9.txt into that folder",
    )


_ALL: Final = (
    *(_synthetic(items) for items in PAPER_TOPS),
    _jester(),
    *(_movielens(lens) for lens in _LENSES),
    _netflix(),
    _yahoo_music(),
    _yahoo_songs(),
)

DATASETS: Mapping[str, Dataset] = MappingProxyType({known.name: known for known in _ALL})
"""Every named dataset by its name."""

RATING_RANGES: Mapping[str, tuple[float, float]] = MappingProxyType(
    {known.name: known.scale for known in _ALL}
    | {
        "movielens": (0.5, 5.0),
        "synthetic-rank-one": (-1.0, 1.0),
        "synthetic-tastes": (0.5, 5.0),
    }
)
"""The lowest and the highest rating that each named dataset's own scale allows (public)."""


def rating_range_of(name: str) -> tuple[float, float]:
    """The rating range of a named dataset; upper and lower case are the same.

    >>> rating_range_of("Jester")
    (-10.0, 10.0)
    """
    found = RATING_RANGES.get(name.strip().lower())
    if found is None:
        refuse("rating_range", name, f"(lowest, highest), or {one_of(name, RATING_RANGES)}")
    return found


def dataset_named(name: str) -> Dataset:
    """The description of a dataset; upper and lower case are the same."""
    found = DATASETS.get(name.strip().lower()) if isinstance(name, str) else None
    if found is None:
        refuse("dataset", name, one_of(name, DATASETS))
    return found
