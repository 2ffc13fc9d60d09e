"""What tacit needs at run time is listed, pinned, under a licence that is known, and consistent."""

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
RUN_TIME_EXTRAS = ("pandas", "figures", "data", "download", "sign")
PERMISSIVE = re.compile(
    r"MIT|BSD|Apache|ISC|PSF|HPND|Zlib|0BSD|CC0|Python Software Foundation|MPL-2.0"
)


def listed() -> dict[str, tuple[str, str]]:
    """The table in docs/dependencies.md: name to licence and reason."""
    text = (ROOT / "docs" / "dependencies.md").read_text()
    rows = re.findall(r"^\| `([^`]+)` \| ([^|]+) \| ([^|]+) \|$", text, re.MULTILINE)
    return {canonicalize_name(name): (licence.strip(), why.strip()) for name, licence, why in rows}


def pinned() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text().split()
    return {
        canonicalize_name(name): pin for name, _, pin in (line.partition("==") for line in lines)
    }


def closure(requirements: Iterable[str]) -> dict[str, Distribution]:
    """Everything that is installed for these requirements, whoever asks for it."""
    found: dict[str, Distribution] = {}
    waiting, seen = [Requirement(text) for text in requirements], set()
    while waiting:
        wanted = waiting.pop()
        key = canonicalize_name(wanted.name), tuple(sorted(wanted.extras))
        if key in seen:
            continue
        seen.add(key)
        try:
            found[key[0]] = distribution(wanted.name)
        except PackageNotFoundError:
            continue  # an extra that is not installed here
        waiting += _asked_for(found[key[0]], wanted.extras)
    return found


def _asked_for(package: Distribution, extras: set[str]) -> list[Requirement]:
    asked = [Requirement(text) for text in package.requires or ()]
    names = {"", *extras}
    return [
        r for r in asked if r.marker is None or any(r.marker.evaluate({"extra": e}) for e in names)
    ]


def licence(package: Distribution) -> str:
    """A licence as a distribution states it: the expression, the classifier or the short text."""
    metadata = package.metadata
    classifiers = [c for c in metadata.get_all("Classifier") or () if c.startswith("License ::")]
    stated = metadata.get("License-Expression") or (
        classifiers and classifiers[0].rpartition(":: ")[2]
    )
    return stated or (metadata.get("License") or "").partition("\n")[0]


EXTRAS = [one for extra in RUN_TIME_EXTRAS for one in PROJECT["optional-dependencies"][extra]]
INSTALLED = closure([*PROJECT["dependencies"], *EXTRAS])


@pytest.mark.parametrize("name", sorted(INSTALLED))
def test_what_is_installed_is_listed_and_pinned(name: str) -> None:
    """A new dependency, also one that another brings along, is somebody's decision."""
    table = listed()
    assert name in table, f"{name} is not in docs/dependencies.md: say what it is for, or drop it"
    stated, why = table[name]
    assert stated == licence(INSTALLED[name])
    assert PERMISSIVE.search(stated), "a licence that nobody has looked at"
    assert len(why) > 10
    assert pinned().get(name) == INSTALLED[name].version


def test_nothing_is_listed_for_nothing() -> None:
    """What nothing asks for any more leaves the table; what is not installed here may stay."""
    for name in set(listed()) - set(INSTALLED):
        with pytest.raises(PackageNotFoundError):
            distribution(name)


def test_everything_fits_together() -> None:
    """`pip check`: no package is missing or of a version that another one refuses."""
    line = [sys.executable, "-m", "pip", "check", "--disable-pip-version-check"]
    found = subprocess.run(line, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout


def test_an_unlisted_one_is_noticed() -> None:
    """The twin: pytest is installed, is no part of run time, and is not in the table."""
    assert "pytest" in closure(["pytest"])
    assert "pytest" not in listed()


def test_the_audit_says_what_it_found(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a network pip-audit knows nothing of any package and ends with 0: no pass."""
    spec = spec_from_file_location("audit_script", ROOT / ".ci" / "dependencies.py")
    assert spec is not None
    assert spec.loader is not None
    script = module_from_spec(spec)
    spec.loader.exec_module(script)
    fine, dark = {"name": "a", "version": "1", "vulns": []}, {"name": "b", "skip_reason": "?"}
    hurt = {"name": "c", "version": "2", "vulns": [{"id": "CVE-1"}]}
    assert script.judge([fine, dark]) == 0
    assert "not looked up: b" in capsys.readouterr().out
    assert script.judge([dark, dark]) == 0
    assert "SKIPPED" in capsys.readouterr().out
    assert script.judge([fine, dark, hurt]) == 1
    assert "VULNERABLE c 2: CVE-1" in capsys.readouterr().out
