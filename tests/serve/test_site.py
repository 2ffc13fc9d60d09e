"""The page as a folder of files: what is in it, and what an export refuses."""

import base64
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

import tacit
from tacit.cli import app
from tacit.serve.site import POLICY, export_site, page_files
from tests.serve.models import save_latent


def test_an_export_has_all_that_the_page_asks_for(tmp_path: Path) -> None:
    model = save_latent(tmp_path)
    done = CliRunner().invoke(app, ["export-web", str(model), "-o", str(tmp_path / "a" / "site")])
    assert done.exit_code == 0, done.output
    assert f"--directory {tmp_path}" in done.output  # how to try it
    site = tmp_path / "a" / "site"
    assert (site / "model.tacit").read_bytes() == model.read_bytes()
    encoded = (site / "model.js").read_text().split('"')[1]
    assert base64.b64decode(encoded) == model.read_bytes()
    for script in site.glob("*.js"):
        imports = re.findall(r'from "\./([\w.]+)"', script.read_text())
        assert all((site / name).is_file() for name in imports), script.name
    page = (site / "index.html").read_text()
    assert all((site / name).is_file() for name in re.findall(r'(?:src|href)="(\w[\w.]+)"', page))


def test_the_page_names_no_other_place_and_has_no_inline_program() -> None:
    """A policy forbids both; a page that does not try needs no browser that enforces it."""
    page = page_files()["index.html"].decode()
    assert f'content="{POLICY}"' in page
    assert "connect-src 'none'" in POLICY
    assert "unsafe" not in POLICY
    assert not re.findall(r"<script(?![^>]*src=)", page)
    assert not re.findall(r"\son\w+=|style=", page)
    for name, content in page_files().items():
        found = re.findall(r"https?://[^\s'\"`]+", content.decode())
        assert set(found) <= {"http://www.w3.org/2000/svg"}, name


def test_nothing_of_the_page_reads_html_from_text() -> None:
    words = re.compile(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function"
    )
    assert [name for name, part in page_files().items() if words.search(part.decode())] == []


def test_an_export_replaces_an_earlier_one_and_nothing_else(tmp_path: Path) -> None:
    model, site = save_latent(tmp_path), tmp_path / "site"
    export_site(model, site)
    export_site(model, site)
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "index.html").write_text("my own page")
    with pytest.raises(tacit.errors.ConfigError, match=r"index\.html: the file is there already"):
        export_site(model, mine)
    assert (mine / "index.html").read_text() == "my own page"
    assert list(mine.iterdir()) == [mine / "index.html"]


def test_an_export_never_writes_over_its_model(tmp_path: Path) -> None:
    model = save_latent(tmp_path)
    before = model.read_bytes()
    with pytest.raises(tacit.errors.ConfigError, match="input"):
        export_site(model, tmp_path, force=True)
    assert model.read_bytes() == before


def test_what_is_no_model_is_not_exported(tmp_path: Path) -> None:
    (tmp_path / "bad.tacit").write_bytes(b"tea")
    with pytest.raises(tacit.errors.ModelFileError):
        export_site(tmp_path / "bad.tacit", tmp_path / "site")
    assert not (tmp_path / "site").exists()
