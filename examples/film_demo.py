"""Films, end to end: ratings, a private model, its certificate, accuracy, and recommendations.

Run it with `python examples/film_demo.py [folder]`. The ratings are synthetic; with your own, the
first function changes and nothing else.
"""

import sys
import tempfile
from pathlib import Path

import tacit
from tacit.datasets.synthetic import synthesise
from tacit.evaluation import evaluate

RANGE = (0.5, 5)


def read() -> tuple[tacit.Ratings, tacit.Ratings]:
    """Return ratings to learn from and ratings to test with, of one public list of films."""
    world = synthesise("tastes", users=4000, items=60, per_user=20, seed=1)
    films = tacit.Catalogue(world.items["item"], world.items["title"], public=True)
    train = tacit.Ratings.from_frame(world.train, rating_range=RANGE, catalogue=films)
    test = tacit.Ratings.from_frame(world.test, rating_range=RANGE, catalogue=films)
    return train, test


def main(folder: Path) -> None:
    """Fit, save, check, measure and recommend."""
    train, test = read()
    path = folder / "films.tacit"
    tacit.fit(train, tacit.Moments(), epsilon=1.0).save(path)

    model = tacit.load(path)  # from here on only the user's own ratings are needed
    print(model)
    print("certificate holds:", model.verify().holds)
    print(model.certificate.promise()[2])

    measured = evaluate(model, train, test)
    print(f"RMSE {measured.rmse:.3f} (NOT PRIVATE: for the owner of the data)")

    mine = {3: 5.0, 17: 4.5, 42: 1.0}
    for place, row in enumerate(model.recommend(mine, 5, because=True), 1):
        reason = row.because[0] if row.because else None
        because = f", because of {reason.title}" if reason else ""
        print(f"{place}. {row.title}: {row.score:.2f}{because}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as scratch:
            main(Path(scratch))
