"""A refit every week under one lifetime budget, as a scheduler would run it.

Run it with `python examples/weekly_refit.py [folder]`: it simulates four weeks. The book is a file
that is kept between runs; a refit is paid for in it before ratings are read, or refused, and is
combined with the earlier ones.
"""

import sys
import tempfile
from pathlib import Path

import polars as pl

import tacit
from tacit.datasets.synthetic import synthesise
from tacit.errors import PrivacyError

LIFETIME = 0.3  # epsilon of everything that is ever published about these people
WEEKLY = 0.15


def ratings_of(week: int) -> tacit.Ratings:
    """Return what has been rated until some week: each week there is more of it."""
    world = synthesise("tastes", users=3000, items=50, per_user=20, seed=1)
    films = tacit.Catalogue(world.items["item"], world.items["title"], public=True)
    so_far = pl.DataFrame(world.train).gather_every(5 - min(week, 4))
    return tacit.Ratings.from_frame(so_far, rating_range=(0.5, 5), catalogue=films)


def refit(book: tacit.Book, folder: Path, week: int) -> bool:
    """Fit this week's model if the book can pay for it; otherwise keep last week's."""
    try:
        model = tacit.refit(ratings_of(week), tacit.Moments(), epsilon=WEEKLY, book=book)
    except PrivacyError as refused:
        print(f"week {week}: kept the old model: {refused}")
        return False
    model.save(folder / "films.tacit")  # replaces the old file, completely or not at all
    print(f"week {week}: {model}; spent {book.spent_epsilon:.3f} of {LIFETIME}")
    return True


def main(folder: Path) -> None:
    """Open the book once, then refit week by week."""
    path = folder / "people.book"
    book = tacit.Book(path) if path.exists() else tacit.Book.new(path, epsilon=LIFETIME)
    done = [refit(book, folder, week) for week in range(1, 5)]
    print(f"{sum(done)} refits; the model in use: {tacit.load(folder / 'films.tacit')}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as scratch:
            main(Path(scratch))
