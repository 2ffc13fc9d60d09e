"""tacit sign and tacit verify as a person types them."""

import json
import shutil
import sys
from pathlib import Path

import pytest

import tacit
from tests.support.sealing import resealed
from tests.test_cli import Shell

OLD = Path(__file__).parent / "files" / "format-1.tacit"


@pytest.fixture
def shell(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Shell:
    """In a folder with a model and keys."""
    monkeypatch.chdir(tmp_path)
    tacit.load(OLD).save("m.tacit")
    shutil.copy(OLD, "old.tacit")
    found = Shell(capsys, monkeypatch)
    assert found("sign", "--new-key", "key.pem")[0] == 0
    return found


def test_sign_and_verify(shell: Shell) -> None:
    code, out, _ = shell("sign", "m.tacit", "--key", "key.pem")
    assert code == 0
    assert "wrote m.tacit.sig" in out
    assert "epsilon=1, delta=1e-06" in out
    code, out, _ = shell("verify", "m.tacit", "--key", "key.public.pem")
    assert code == 0
    assert out.startswith("holds")
    assert "valid: made with the private key of key.public.pem" in out
    found = shell.json("verify", "m.tacit", "--key", "key.public.pem")
    assert (found["holds"], found["signed"]) == (True, True)
    assert found["signer"] == json.loads(Path("m.tacit.sig").read_text())["key"]
    assert found["digest"] == tacit.load("m.tacit").digest


def test_a_signature_elsewhere(shell: Shell) -> None:
    found = shell.json("sign", "m.tacit", "--key", "key.pem", "-o", "s.json")
    assert found["signature"] == "s.json"
    words = ("verify", "m.tacit", "--key", "key.public.pem")
    assert shell(*words, "--signature", "s.json")[0] == 0
    code, out, _ = shell(*words)
    assert code == 1
    assert "SIGNATURE NOT VALID: signature file m.tacit.sig cannot be read" in out


def test_what_is_not_valid_ends_with_1(shell: Shell) -> None:
    shell("sign", "m.tacit", "--key", "key.pem")
    words = ("verify", "old.tacit", "--key", "key.public.pem", "--signature", "m.tacit.sig")
    code, out, _ = shell(*words)
    assert code == 1
    assert out.startswith("SIGNATURE NOT VALID")
    code, out, _ = shell(*words, "--json")
    assert code == 1
    found = json.loads(out)
    assert (found["holds"], found["signed"], found["signer"]) == (True, False, None)
    assert "of another file" in found["problems"][0]


def test_without_a_key_nothing_is_said_of_the_signer(shell: Shell) -> None:
    found = shell.json("verify", "m.tacit")
    assert (found["signed"], found["signer"]) == (None, None)
    assert "no --key was given" in shell("verify", "m.tacit")[1]
    shell("sign", "m.tacit", "--key", "key.pem")
    assert "m.tacit.sig is there, but no --key" in shell("verify", "m.tacit")[1]


def test_verify_says_what_was_checked_and_what_was_not(shell: Shell) -> None:
    _, out, _ = shell("verify", "m.tacit")
    checked, _, missing = out.partition("Not checked")
    model = tacit.load("m.tacit")
    for words in (
        "1 listed, 1 made by the fit",
        "covariance",
        "replay: directions 1 x 3",
        "the releases that it needs are listed",
        "1 from sensitivity and noise of each release, at delta 1e-06; 1 is claimed",
        f"{model.digest} matches the file",
    ):
        assert words in checked
    for words in ("that nothing else was released", "taken as public", "other models", "who made"):
        assert words in missing
    assert "digest" not in missing


def test_files_without_a_digest_are_named(shell: Shell) -> None:
    _, out, _ = shell("verify", "old.tacit")
    assert "carries no digest" in out.partition("Not checked")[2]
    assert shell.json("verify", "old.tacit")["digest"] is None
    assert shell.json("info", "old.tacit")["digest"] is None
    assert str(shell.json("info", "m.tacit")["digest"]).startswith("sha256:")


def test_a_damaged_model_is_neither_signed_nor_verified(shell: Shell) -> None:
    content = Path("m.tacit").read_bytes()
    Path("m.tacit").write_bytes(content[:-1] + bytes([content[-1] ^ 4]))
    for words in (("sign", "m.tacit", "--key", "key.pem"), ("verify", "m.tacit")):
        code, _, err = shell(*words)
        assert code == 2
        assert "does not match its digest" in err
    assert not Path("m.tacit.sig").exists()


def test_a_promise_that_does_not_hold_is_not_signed(shell: Shell) -> None:
    content = Path("m.tacit").read_bytes().replace(b'\\"epsilon\\": 1.0', b'\\"epsilon\\": 0.1')
    Path("m.tacit").write_bytes(resealed(content))
    code, _, err = shell("sign", "m.tacit", "--key", "key.pem")
    assert code == 2
    assert "its promise does not hold" in err
    assert not Path("m.tacit.sig").exists()
    code, out, _ = shell("verify", "m.tacit")
    assert code == 1
    assert "see above" in out
    assert "the releases that it needs are listed" not in out


def test_passwords(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY_WORD", "open sesame")
    assert shell("sign", "--new-key", "a.pem", "--password-env", "KEY_WORD")[0] == 0
    assert "ENCRYPTED" in Path("a.pem").read_text()
    assert shell("sign", "m.tacit", "--key", "a.pem", "--password-env", "KEY_WORD")[0] == 0
    monkeypatch.setattr(sys.stdin, "isatty", lambda: False, raising=False)
    for words, expected in (
        (("m.tacit", "--key", "a.pem"), "--password-env NAME"),
        (("--new-key", "b.pem", "--encrypt"), "--password-env NAME"),
        (("m.tacit", "--key", "a.pem", "--password-env", "NO_SUCH"), "NO_SUCH"),
    ):
        code, out, err = shell("sign", *words)
        assert (code, out) == (2, "")
        assert expected in err
        assert "sesame" not in err
    assert not Path("b.pem").exists()
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setattr("typer.prompt", lambda *_, **__: "open sesame")
    assert shell("sign", "m.tacit", "--key", "a.pem")[0] == 0


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("sign",), "--new-key KEY"),
        (("sign", "m.tacit"), "--key KEY"),
        (("sign", "--key", "key.pem"), "give MODEL"),
        (("sign", "--new-key", "key.pem"), "never written over"),
        (("sign", "m.tacit", "--new-key", "b.pem"), "MODEL cannot be given"),
        (("sign", "m.tacit", "--key", "key.pem", "--encrypt"), "--encrypt cannot be given"),
        (("sign", "m.tacit", "--key", "key.public.pem"), "is a public key"),
        (("sign", "m.tacit", "--key", "key.pem", "-o", "m.tacit"), "is an input too"),
        (("sign", "none.tacit", "--key", "key.pem"), "none.tacit cannot be read"),
        (("sign", "key.pem", "--key", "key.pem"), "not a valid model"),
        (("verify", "m.tacit", "--signature", "x"), "give --key too"),
        (("verify", "m.tacit", "--key", "key.pem"), "is a private key"),
        (("verify", "m.tacit", "--key", "none.pem"), "none.pem cannot be read"),
    ],
)
def test_errors_are_one_line(words: tuple[str, ...], expected: str, shell: Shell) -> None:
    before = {path.name: path.read_bytes() for path in Path().iterdir()}
    code, out, err = shell(*words)
    assert (code, out) == (2, "")
    assert expected in err
    assert err.count("\n") == 1
    assert {path.name: path.read_bytes() for path in Path().iterdir()} == before
