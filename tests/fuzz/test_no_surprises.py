"""No pickle, no eval, no program and no network by surprise: in the source and at run time."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.source import MODULES

ROOT = Path(__file__).parents[2]

RUNS_CODE = {
    "pickle",
    "cPickle",
    "_pickle",
    "dill",
    "cloudpickle",
    "joblib",
    "marshal",
    "shelve",
    "copyreg",
    "yaml",
    "code",
    "codeop",
    "runpy",
}
NETWORK = {
    "socket",
    "socketserver",
    "ssl",
    "http",
    "urllib",
    "urllib3",
    "requests",
    "httpx",
    "aiohttp",
    "ftplib",
    "smtplib",
    "xmlrpc",
    "telnetlib",
    "webbrowser",
    "fsspec",
    "boto3",
}
PROGRAMS = {"subprocess", "multiprocessing", "pty"}
MODULES_FORBIDDEN = {
    **dict.fromkeys(RUNS_CODE, "runs code"),
    **dict.fromkeys(NETWORK, "network"),
    **dict.fromkeys(PROGRAMS, "program"),
    "pooch": "network",
}
NAMES_FORBIDDEN = {
    "eval": "runs code",
    "exec": "runs code",
    "compile": "runs code",
    "__import__": "runs code",
}
ATTRIBUTES_FORBIDDEN = {
    **dict.fromkeys(
        (
            "np.load",
            "numpy.load",
            "np.fromregex",
            "pl.read_database_uri",
            "pl.Expr.deserialize",
            "pl.LazyFrame.deserialize",
            "pd.read_pickle",
        ),
        "runs code",
    ),
    **dict.fromkeys(
        (
            "os.system",
            "os.popen",
            "os.fork",
            "os.execv",
            "os.execve",
            "os.spawnv",
            "os.posix_spawn",
        ),
        "program",
    ),
}

ALLOWED = {
    ("datasets/fetch.py", "network"): "downloads, when someone asks for one",
    ("research/experiments/pool.py", "program"): "workers of experiments: this interpreter",
}
"""Where something of a kind may stand, and why."""


def found_in(tree: ast.AST) -> set[tuple[str, str]]:
    """Every (kind, name) that a module must not have."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
            found |= {
                ("runs code", "numpy.load")
                for a in node.names
                if (node.module, a.name) == ("numpy", "load")
            }
        else:
            found |= _used(node)
            continue
        tops = {name.partition(".")[0] for name in names}
        found |= {(MODULES_FORBIDDEN[top], top) for top in tops if top in MODULES_FORBIDDEN}
    return found


def _used(node: ast.AST) -> set[tuple[str, str]]:
    if isinstance(node, ast.Name) and node.id in NAMES_FORBIDDEN:
        return {(NAMES_FORBIDDEN[node.id], node.id)}
    if isinstance(node, ast.Attribute) and ast.unparse(node) in ATTRIBUTES_FORBIDDEN:
        return {(ATTRIBUTES_FORBIDDEN[ast.unparse(node)], ast.unparse(node))}
    if isinstance(node, ast.keyword) and node.arg in {"allow_pickle", "shell"}:
        return {("runs code", node.arg)}
    if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
        return set() if _own_module(node) else {("runs code", "import_module")}
    return set()


def _own_module(call: ast.Call) -> bool:
    """Whether what is imported by name can only be a module of tacit, from a table there."""
    what = ast.unparse(call.args[0])
    return what.startswith(("'tacit.", "f'tacit.", "_HOME_OF.get("))


def test_the_source_has_none() -> None:
    assert len(MODULES) > 100
    for module in MODULES:
        found = found_in(MODULES[module])
        wrong = {(kind, name) for kind, name in found if (module, kind) not in ALLOWED}
        assert not wrong, module


def test_what_is_allowed_is_there() -> None:
    """An exception that nobody needs any more has to go."""
    for (module, kind), why in ALLOWED.items():
        kinds = {kind for kind, _ in found_in(MODULES[module])}
        assert kind in kinds, why


@pytest.mark.parametrize(
    "code",
    [
        "import pickle",
        "from marshal import loads",
        "import os\nos.system('x')",
        "eval('1')",
        "def f(x): return __import__(x)",
        "import numpy as np\nnp.load('x')",
        "from numpy import load",
        "import numpy as np\nnp.savez('x', allow_pickle=True)",
        "import yaml\nyaml.load('x')",
        "def f():\n    import socket",
        "from urllib.request import urlopen",
        "import requests",
        "import subprocess",
        "from importlib import import_module\nimport_module(name)",
    ],
)
def test_the_walk_notices(code: str) -> None:
    assert found_in(ast.parse(code))


WATCHED = """
import json, sys, warnings
from pathlib import Path
seen = []
WORDS = ("socket.", "subprocess.", "os.system", "os.exec", "os.fork", "os.spawn", "os.posix_spawn",
         "os.startfile", "pty.", "urllib.", "http.", "ftplib.", "smtplib.", "webbrowser.")
def hook(event, arguments):
    if event.startswith(WORDS):
        seen.append(event)
sys.addaudithook(hook)
warnings.simplefilter("ignore")
folder = Path(sys.argv[1])
"""
WORK = """
import contextlib
import tacit
from tacit.evaluation import evaluate
from tests.conftest import ratings_for
from typer.testing import CliRunner
from tacit.cli import app
ratings = ratings_for(0)
model = tacit.fit(ratings, epsilon=5.0, checkpoint=folder / "c")
tacit.tune(ratings, [tacit.FrankWolfe(rounds=2), tacit.SVD()], epsilon=5.0)
model.save(folder / "m.tacit")
model = tacit.load(folder / "m.tacit")
model.predict({"film-02": 4.0}), model.recommend({"film-02": 4.0}), model.verify(), model.explain()
for place in ("https://example.invalid/r.parquet", "s3://bucket/r.parquet", "http://localhost/r.csv"):
    with contextlib.suppress(tacit.TacitError):
        tacit.Ratings.from_file(place, rating_range=(1, 5))
    with contextlib.suppress(tacit.TacitError):
        tacit.load(place)
    with contextlib.suppress(tacit.TacitError):
        tacit.Catalogue.from_file(place)
run = lambda *words: CliRunner().invoke(app, list(map(str, words)), catch_exceptions=False)
made = run("synth", "--kind", "tastes", "--users", 200, "--items", 30, "--per-user", 8, "--seed", 1,
           "-o", folder / "r.parquet", "--test", folder / "t.parquet")
codes = [made.exit_code]
codes.append(run("fit", folder / "r.parquet", "--rating-range", 0.5, 5, "--epsilon", 5,
                 "-o", folder / "n.tacit").exit_code)
codes.append(run("evaluate", folder / "n.tacit", "--train", folder / "r.parquet",
                 "--test", folder / "t.parquet").exit_code)
codes.append(run("info", folder / "n.tacit").exit_code)
codes.append(run("sign", "--new-key", folder / "key.pem").exit_code)
codes.append(run("sign", folder / "n.tacit", "--key", folder / "key.pem").exit_code)
codes.append(run("verify", folder / "n.tacit", "--key", folder / "key.public.pem").exit_code)
print(json.dumps([seen, codes]))
"""


def watched(work: str, folder: Path) -> list[list[object]]:
    line = [sys.executable, "-c", WATCHED + work, str(folder)]
    found = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr[-2000:]
    answer: list[list[object]] = json.loads(found.stdout.splitlines()[-1])
    return answer


@pytest.mark.slow
def test_a_whole_day_of_work_opens_no_socket_and_starts_no_program(tmp_path: Path) -> None:
    """Fit, tune, save, load, predict, evaluate, and addresses on the network in place of files."""
    seen, codes = watched(WORK, tmp_path)
    assert seen == []
    assert codes == [0] * 7


@pytest.mark.parametrize(
    "work",
    [
        "import socket; socket.socket().close()",
        "import subprocess; subprocess.run(['true'])",
        "import os; os.system('true')",
    ],
)
def test_the_watch_notices(work: str, tmp_path: Path) -> None:
    seen, _ = watched(f"{work}\nprint(json.dumps([seen, []]))", tmp_path)
    assert seen
