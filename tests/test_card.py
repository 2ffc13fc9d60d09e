"""Model cards: what is in the certificate, as hubs and people read it."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

import tacit
from tacit.accounting.promise import rounded_down, rounded_up
from tacit.reporting.card import MARK, model_card
from tests.conftest import ratings_for
from tests.test_cli import Shell


@pytest.fixture(scope="module")
def model() -> tacit.Model:
    return tacit.fit(ratings_for(0), tacit.Moments(), epsilon=1.0)


@pytest.fixture
def shell(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    model: tacit.Model,
) -> Shell:
    monkeypatch.chdir(tmp_path)
    model.save("m.tacit")
    return Shell(capsys, monkeypatch)


def head(card: str) -> str:
    return card.split("---\n")[1]


def test_it_says_what_the_certificate_says(model: tacit.Model) -> None:
    card = model_card(model, "Films", "cc-by-4.0")
    assert head(card).startswith('library_name: "tacit"\nlicense: "cc-by-4.0"\ntags:\n- ')
    assert "  epsilon: 1.0\n" in head(card)
    assert "  delta: 1.0e-06\n" in head(card)
    for sentence in model.certificate.promise():
        assert sentence.split("; ")[0] in card
    for entry in model.certificate.releases:
        drawn = f"{rounded_up(entry.sensitivity)} | {rounded_down(entry.noise_sd)}"
        assert f"| {entry.name} | {drawn} |" in card
    assert "does not hold" not in card


def test_a_model_without_privacy_says_so_first() -> None:
    card = model_card(tacit.fit(ratings_for(0), tacit.Moments(), budget=None), "Films")
    assert "NOT PRIVATE" in card.split("## Privacy")[0]
    assert '- "not-private"' in head(card)
    assert "differential-privacy" not in head(card)
    assert "  private: false\n  grade:" in head(card)


def test_a_certificate_that_does_not_hold_is_exposed(model: tacit.Model) -> None:
    """The twin: of a sound model nothing of the sort is said."""
    budget = replace(model.certificate.budget, epsilon=0.1)  # type: ignore[type-var]
    false = replace(model, certificate=replace(model.certificate, budget=budget))
    card = model_card(false, "Films")
    assert "**The certificate does not hold:**" in card
    assert "above the claim" in card


def test_nothing_in_a_foreign_file_becomes_markup(model: tacit.Model) -> None:
    hostile = {"rating range": "<script>alert(1)</script>\n# Strong | promise [x](y)"}
    public = replace(model.certificate, public=hostile)
    card = model_card(replace(model, certificate=public), "A\n# B <b>")
    assert "<script>" not in card
    assert "\\# Strong \\| promise \\[x\\](y)" in card
    assert "\n# A \\# B &lt;b>\n" in card


def test_the_example_in_it_runs(model: tacit.Model) -> None:
    code = re.findall(r"```python\n(.*?)```", model_card(model, "Films"), re.DOTALL)[0]
    line = code.splitlines()[-1]
    assert len(eval(line, {"model": model})) == 10  # noqa: S307 - our own text


def test_as_a_person_types_it(shell: Shell) -> None:
    code, out, _ = shell("card", "m.tacit", "--title", "Films of ours")
    assert code == 0
    assert "\n# Films of ours\n" in out
    assert shell("card", "m.tacit", "-o", "README.md")[1] == "wrote README.md\n"
    assert MARK in Path("README.md").read_text()
    assert shell("card", "m.tacit", "-o", "README.md")[0] == 0  # a card may be replaced
    Path("README.md").write_text("# Mine")
    assert shell("card", "m.tacit", "-o", "README.md")[0] == 2
    assert shell("card", "m.tacit", "-o", "m.tacit")[0] == 2
    found = shell.json("card", "m.tacit", "-o", "README.md", "--force")
    assert found["card"] == "README.md"
    assert json.dumps(found["tacit"]["epsilon"]) == "1.0"


@pytest.mark.extras
def test_a_hub_reads_its_metadata(model: tacit.Model) -> None:
    yaml = pytest.importorskip("yaml")
    facts = yaml.safe_load(head(model_card(model, "Films", "cc-by-4.0")))
    assert facts["tacit"]["delta"] == 1e-6
    assert facts["tacit"]["private"] is True
    hub = pytest.importorskip("huggingface_hub")
    card = hub.ModelCard(model_card(model, "Films", "cc-by-4.0"))
    assert card.data.library_name == "tacit"
    assert card.data.license == "cc-by-4.0"
    assert card.data.to_dict()["tacit"]["epsilon"] == 1.0
    assert card.text.strip().startswith(MARK)
