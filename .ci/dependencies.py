"""Known vulnerabilities of what is pinned in constraints.txt, by pip-audit.

Exit code 1 if there are any; 0 if there are none, or if nobody could be asked, which is then said
in so many words. Run by `make dependencies`.
"""

import json
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
HOME = ROOT / "build" / "audit"
BIN = HOME / ("Scripts" if sys.platform == "win32" else "bin")
PATIENCE = 300


def main() -> int:
    """Install pip-audit where it disturbs nothing, and ask."""
    if not _installed():
        return _skipped("pip-audit cannot be installed (no network?)")
    answer = _answer()
    if answer is None:
        return _skipped("pip-audit could not ask anybody (no network?)")
    return judge(answer)


def judge(packages: list[dict[str, Any]]) -> int:
    """Say what was found; whatever could not be looked up was not checked."""
    unknown = [package["name"] for package in packages if "skip_reason" in package]
    bad = [package for package in packages if package.get("vulns")]
    for package in bad:
        ids = ", ".join(str(vulnerability["id"]) for vulnerability in package["vulns"])
        print(f"VULNERABLE {package['name']} {package.get('version')}: {ids}")
    if bad:
        return 1
    if packages and len(unknown) == len(packages):
        return _skipped("nothing is known of any package (no network?)")
    print(f"{len(packages) - len(unknown)} packages: no known vulnerability")
    if unknown:
        print(f"not looked up: {', '.join(unknown)}")
    return 0


def _skipped(why: str) -> int:
    print(f"SKIPPED: {why}; known vulnerabilities were NOT looked up")
    return 0


def _installed() -> bool:
    if not (BIN / "pip-audit").exists():
        venv.create(HOME, with_pip=True)
        line = [BIN / "python", "-m", "pip", "install", "--quiet", "pip-audit"]
        found = subprocess.run(line, capture_output=True, check=False, timeout=PATIENCE)
        return found.returncode == 0
    return True


def _answer() -> list[dict[str, Any]] | None:
    line = [BIN / "pip-audit", "-r", ROOT / "constraints.txt", "--no-deps", "--disable-pip"]
    line += ["--progress-spinner", "off", "--format", "json"]
    try:
        found = subprocess.run(line, capture_output=True, text=True, check=False, timeout=PATIENCE)
        packages: list[dict[str, Any]] = json.loads(found.stdout)["dependencies"]
    except (ValueError, KeyError, OSError, subprocess.TimeoutExpired):
        return None
    return packages


if __name__ == "__main__":
    sys.exit(main())
