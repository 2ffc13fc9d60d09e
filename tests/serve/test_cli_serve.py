"""`tacit serve` as a person types it, without starting a server."""

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tacit.cli import app
from tacit.cli.demo import learn_quickly
from tacit.errors import TacitError
from tests.serve.models import save_latent


def refused(*words: str) -> str:
    done = CliRunner().invoke(app, ["serve", *words])
    assert isinstance(done.exception, TacitError)
    return str(done.exception)


def test_a_model_or_the_demo_is_needed(tmp_path: Path) -> None:
    assert "either a model file or --demo" in refused()
    assert "either a model file or --demo" in refused(str(tmp_path / "m.tacit"), "--demo")


def test_impossible_limits_and_tokens_are_refused(tmp_path: Path) -> None:
    model = str(save_latent(tmp_path))
    done = CliRunner().invoke(app, ["serve", model, "--max-ratings", "0"])
    assert done.exit_code == 2
    assert "--max-ratings" in done.output
    assert "--token-file" in refused(model, "--token-file", str(tmp_path / "none"))


def test_missing_packages_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fastapi", None)
    said = refused(str(save_latent(tmp_path)))
    assert "pip install 'tacit[serve]'" in said
    assert "export-web" in said


def test_the_demo_takes_what_an_earlier_one_left(tmp_path: Path) -> None:
    model = save_latent(tmp_path)
    (tmp_path / ".tacit-demo").write_text("a demo was here")
    assert learn_quickly(tmp_path) == model


@pytest.mark.extras
def test_a_port_that_is_taken_is_an_error(tmp_path: Path) -> None:
    """In a process of its own: a server sets up loops and streams of the one that it runs in."""
    pytest.importorskip("fastapi")
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        line = [sys.executable, "-m", "tacit", "serve", str(save_latent(tmp_path)), "--port"]
        line.append(str(taken.getsockname()[1]))
        done = subprocess.run(line, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 2
    assert "cannot listen there" in done.stderr
