"""Examples in the help of each verb. A test runs them all, in this order, in one folder."""

EXAMPLES: dict[str, tuple[str, ...]] = {
    "synth": (
        "tacit synth -o train.parquet --users 2000 --items 60 --per-user 20 "
        "--test test.parquet --items-out items.csv",
    ),
    "split": (
        "tacit split log.csv -o past.parquet --test future.parquet --share 0.2",
        "tacit split train.parquet -o most.parquet --test rest.parquet --by random",
    ),
    "plan": ("tacit plan --users 100000 --items 400 --epsilon 1",),
    "fit": (
        "tacit fit train.parquet -o model.tacit --epsilon 1 --rating-range 0.5 5 --items items.csv",
        "tacit fit train.parquet -o fast.tacit --epsilon 1 --rating-range 0.5 5 "
        "--algorithm moments --quiet",
    ),
    "tune": (
        "tacit tune train.parquet -o tuned.tacit --epsilon 2 --rating-range 0.5 5 "
        "--candidate moments --candidate 'frank-wolfe rounds=5'",
    ),
    "extend": (
        "tacit fit train.parquet -o plain.tacit --epsilon 1 --rating-range 0.5 5 "
        "--items genres.csv --feature genre --unknown-items drop",
        "tacit extend plain.tacit new-items.csv -o extended.tacit",
    ),
    "predict": ("tacit predict model.tacit --ratings my.csv --item 3 --item 17 --std",),
    "recommend": (
        "tacit recommend model.tacit --ratings my.csv -n 5 --because",
        "tacit recommend model.tacit",
    ),
    "similar": ("tacit similar fast.tacit 3 -n 5",),
    "evaluate": ("tacit evaluate model.tacit --train train.parquet --test test.parquet",),
    "report": (
        "tacit report model.tacit",
        "tacit report model.tacit --train train.parquet --ratings test.parquet -o measured.html",
    ),
    "card": ("tacit card model.tacit -o card.md",),
    "certificate": ("tacit certificate model.tacit", "tacit certificate model.tacit --json"),
    "sign": (
        "tacit sign --new-key key.pem",
        "tacit sign model.tacit --key key.pem",
    ),
    "verify": (
        "tacit verify model.tacit",
        "tacit verify model.tacit --key key.public.pem",
    ),
    "audit": (
        "tacit audit moments --epsilon 1 --parts sensitivity --quick",
        "tacit audit model.tacit --quick -o audit.html",
    ),
    "partition": (
        "tacit partition train.parquet -o ratings.store --rating-range 0.5 5 --items items.csv",
    ),
    "serve": ("tacit serve model.tacit --port 8765",),
    "export-web": ("tacit export-web model.tacit -o website",),
    "book new": ("tacit book new people.book --epsilon 4",),
    "book show": (
        "tacit fit train.parquet -o first.tacit --epsilon 1 --rating-range 0.5 5 "
        "--items items.csv --algorithm moments --book people.book",
        "tacit book show people.book",
    ),
    "book plan": ("tacit book plan --refits 52 --epsilon 1",),
    "book export": ("tacit book export people.book -o lifetime.json",),
    "book verify": ("tacit book verify people.book --model first.tacit",),
    "refit": (
        "tacit refit train.parquet -o second.tacit --epsilon 0.5 --rating-range 0.5 5 "
        "--items items.csv --book people.book",
    ),
    "book merge": (
        "tacit book new other.book --epsilon 4",
        "tacit book merge people.book other.book -o both.book",
    ),
    "info": ("tacit info model.tacit",),
    "demo": ("tacit demo --users 3000 --folder demo",),
    "reproduce": ("tacit reproduce --list",),
    "data list": ("tacit data list",),
    "data info": ("tacit data info movielens-1m",),
    "data get": ("tacit data get jester",),
}
"""What to type, by verb: with the files that the first of them write, my.csv and the like."""
