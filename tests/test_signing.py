"""Signatures of model files: what is signed is checked, and nothing else passes for it."""

import builtins
import hashlib
import json
import os
import shutil
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization as forms
from cryptography.hazmat.primitives.asymmetric import ec, ed25519

import tacit
from tacit.models import signing

OLD = Path(__file__).parent / "files" / "format-1.tacit"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model file, its signature and the keys."""
    folder = tmp_path_factory.mktemp("signed")
    tacit.load(OLD).save(folder / "m.tacit")
    signing.new_key(folder / "key.pem")
    signing.sign(folder / "m.tacit", folder / "key.pem")
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made, tmp_path / "signed")
    return tmp_path / "signed"


def check(folder: Path, **names: str) -> signing.Signature:
    names = {"model": "m.tacit", "key": "key.public.pem", "signature": "m.tacit.sig"} | names
    return signing.verify(
        folder / names["model"], folder / names["key"], signature=folder / names["signature"]
    )


def test_what_is_signed_is_checked(folder: Path) -> None:
    found = signing.verify(folder / "m.tacit", folder / "key.public.pem")
    assert found == check(folder)
    content = (folder / "m.tacit").read_bytes()
    assert found.file == f"sha256:{hashlib.sha256(content).hexdigest()}"


def test_every_bit_of_a_model_file_is_signed(folder: Path) -> None:
    """Also those that its digest covers; a forger would make that right again."""
    path, content = folder / "m.tacit", (folder / "m.tacit").read_bytes()
    for at in range(0, len(content), 17):
        path.write_bytes(content[:at] + bytes([content[at] ^ 1 << at % 8]) + content[at + 1 :])
        with pytest.raises(tacit.SignatureError, match="of another file"):
            check(folder)
    for other in (content[:-1], content + b"\0", b""):
        path.write_bytes(other)
        with pytest.raises(tacit.SignatureError, match="of another file"):
            check(folder)


@pytest.mark.parametrize("step", [9, pytest.param(1, marks=pytest.mark.slow)])
def test_every_bit_of_a_signature_file_matters(step: int, folder: Path) -> None:
    path, content = folder / "m.tacit.sig", (folder / "m.tacit.sig").read_bytes()
    for bit in range(0, 8 * len(content), step):
        hurt = bytearray(content)
        hurt[bit // 8] ^= 1 << bit % 8
        path.write_bytes(bytes(hurt))
        with pytest.raises(tacit.SignatureError, match=r"m\.tacit\.sig"):
            check(folder)
    for length in range(0, len(content) - 2, step):
        path.write_bytes(content[:length])
        with pytest.raises(tacit.SignatureError, match=r"m\.tacit\.sig"):
            check(folder)


def test_a_forger_cannot_move_a_signature_to_another_file(folder: Path) -> None:
    """He can write any digest and fingerprint into the signature file, and it does not help."""
    place = folder / "m.tacit.sig"
    facts = json.loads(place.read_text())
    shutil.copy(OLD, folder / "m.tacit")
    facts["file"] = "sha256:" + hashlib.sha256(OLD.read_bytes()).hexdigest()
    place.write_text(json.dumps(facts))
    with pytest.raises(tacit.SignatureError, match="damaged or forged"):
        check(folder)
    signing.new_key(folder / "his.pem")
    signing.sign(folder / "m.tacit", folder / "his.pem")
    his = json.loads(place.read_text())
    place.write_text(json.dumps(his | {"key": facts["key"]}))
    with pytest.raises(tacit.SignatureError, match="damaged or forged"):
        check(folder)


def test_another_key_is_named(folder: Path) -> None:
    other = signing.new_key(folder / "other.pem")
    with pytest.raises(tacit.SignatureError, match=other):
        check(folder, key="other.public.pem")


def test_a_signature_of_the_bare_digest_does_not_pass(folder: Path) -> None:
    """A key that signs other things, 32 bytes say, is not thereby made to sign models."""
    private = forms.load_pem_private_key((folder / "key.pem").read_bytes(), None)
    assert isinstance(private, ed25519.Ed25519PrivateKey)
    place = folder / "m.tacit.sig"
    facts = json.loads(place.read_text())
    digest = bytes.fromhex(facts["file"].removeprefix("sha256:"))
    for message, passes in ((digest, False), (b"tacit-signature/1\0" + digest, True)):
        place.write_text(json.dumps(facts | {"signature": private.sign(message).hex()}))
        if passes:
            check(folder)
        else:
            with pytest.raises(tacit.SignatureError, match="damaged or forged"):
                check(folder)


def hostile(facts: dict[str, Any]) -> dict[str, bytes]:
    text = json.dumps(facts)
    upper = facts | {"signature": facts["signature"].upper()}
    return {
        "nothing": b"",
        "zeros": bytes(500),
        "no JSON": b"-----BEGIN SIGNATURE-----",
        "a list": b"[]",
        "nested": b"[" * 4000,
        "numbers": json.dumps(dict.fromkeys(facts, 1)).encode(),
        "a field more": json.dumps(facts | {"note": "x"}).encode(),
        "a field less": json.dumps({k: v for k, v in facts.items() if k != "key"}).encode(),
        "a field twice": (text[:-1] + ', "key": "' + facts["key"] + '"}').encode(),
        "another format": json.dumps(facts | {"format": "tacit-signature/2"}).encode(),
        "another algorithm": json.dumps(facts | {"algorithm": "none"}).encode(),
        "too long": json.dumps(facts | {"signature": facts["signature"] + "00"}).encode(),
        "upper case": json.dumps(upper).encode(),
        "other digits": json.dumps(facts | {"signature": "\u0661" * 128}).encode(),
        "huge": text.encode() + b" " * 5000,
    }


def test_hostile_signature_files(folder: Path) -> None:
    place = folder / "m.tacit.sig"
    for name, content in hostile(json.loads(place.read_text())).items():
        place.write_bytes(content)
        with pytest.raises(tacit.SignatureError, match=r"m\.tacit\.sig"):
            pytest.fail(f"{name}: {check(folder)}")


def test_files_that_are_no_files(folder: Path) -> None:
    with pytest.raises(tacit.SignatureError, match="No such file"):
        check(folder, signature="none.sig")
    with pytest.raises(tacit.SignatureError, match="No such file"):
        check(folder, model="none.tacit")
    with pytest.raises(tacit.ConfigError, match="No such file"):
        check(folder, key="none.pem")
    with pytest.raises(tacit.SignatureError, match="a folder"):
        check(folder, signature=".")
    with (folder / "m.tacit").open("wb") as file:
        file.truncate(9 << 30)
    with pytest.raises(tacit.SignatureError, match="too large"):
        check(folder)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
@pytest.mark.timeout(30)
def test_pipes_are_not_waited_for(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    with pytest.raises(tacit.SignatureError, match="a pipe"):
        check(folder, model="pipe")
    with pytest.raises(tacit.SignatureError, match="a pipe"):
        check(folder, signature="pipe")
    with pytest.raises(tacit.ConfigError, match="a pipe"):
        check(folder, key="pipe")


def test_new_keys_are_their_owners_and_never_written_over(tmp_path: Path) -> None:
    path = tmp_path / "key.pem"
    signing.new_key(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    before = path.read_bytes()
    with pytest.raises(tacit.ConfigError, match="never written over"):
        signing.new_key(path)
    assert path.read_bytes() == before
    path.unlink()
    with pytest.raises(tacit.ConfigError, match=r"key\.public\.pem exists"):
        signing.new_key(path)
    assert not path.exists()


def test_new_keys_are_not_written_through_links(tmp_path: Path) -> None:
    (tmp_path / "key.pem").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(tacit.ConfigError, match="never written over"):
        signing.new_key(tmp_path / "key.pem")
    assert not (tmp_path / "elsewhere").exists()


def test_outputs_never_replace_anything_but_signatures(folder: Path) -> None:
    (folder / "notes.txt").write_text("mine")
    (folder / "link.sig").symlink_to(folder / "m.tacit")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    for name in ("m.tacit", "key.pem", "key.public.pem", "notes.txt", "link.sig", "."):
        with pytest.raises(tacit.ConfigError, match="give another name"):
            signing.sign(folder / "m.tacit", folder / "key.pem", output=folder / name)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    signing.sign(OLD, folder / "key.pem", output=folder / "m.tacit.sig")
    with pytest.raises(tacit.SignatureError, match="of another file"):
        check(folder)
    with pytest.raises(tacit.ConfigError, match="cannot be written"):
        signing.sign(OLD, folder / "key.pem", output=folder / "no" / "x.sig")


def test_encrypted_keys(folder: Path) -> None:
    key = folder / "locked.pem"
    fingerprint = signing.new_key(key, password="open sesame")  # noqa: S106
    assert signing.is_encrypted(key)
    assert not signing.is_encrypted(folder / "key.pem")
    with pytest.raises(tacit.ConfigError, match="is encrypted"):
        signing.sign(folder / "m.tacit", key)
    with pytest.raises(tacit.ConfigError, match="password is wrong") as caught:
        signing.sign(folder / "m.tacit", key, password="sesame")  # noqa: S106
    assert "sesame" not in str(caught.value)
    made = signing.sign(folder / "m.tacit", key, password="open sesame")  # noqa: S106
    assert made.key == fingerprint
    for bad in ("", "x" * 1024):
        with pytest.raises(tacit.ConfigError, match="1 to 1023"):
            signing.new_key(folder / "another.pem", password=bad)
    assert not (folder / "another.pem").exists()


def test_keys_of_the_wrong_kind(folder: Path) -> None:
    other = ec.generate_private_key(ec.SECP256R1())
    pem, plain = forms.Encoding.PEM, forms.NoEncryption()
    (folder / "ec.pem").write_bytes(other.private_bytes(pem, forms.PrivateFormat.PKCS8, plain))
    shown = other.public_key().public_bytes(pem, forms.PublicFormat.SubjectPublicKeyInfo)
    (folder / "ec.public.pem").write_bytes(shown)
    (folder / "huge.pem").write_bytes(bytes(1 << 17))
    for key, expected in (
        ("ec.pem", "another kind"),
        ("key.public.pem", "is a public key"),
        ("m.tacit", "not a private key"),
        ("huge.pem", "too large"),
    ):
        with pytest.raises(tacit.ConfigError, match=expected):
            signing.sign(folder / "m.tacit", folder / key, output=folder / "x.sig")
    for key, expected in (
        ("ec.public.pem", "another kind"),
        ("key.pem", "is a private key"),
        ("m.tacit", "expected a public key"),
        ("huge.pem", "too large"),
    ):
        with pytest.raises(tacit.ConfigError, match=expected):
            check(folder, key=key)


def test_without_the_library_it_says_what_to_install(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = builtins.__import__

    def without(name: str, *rest: Any, **more: Any) -> Any:
        if name.partition(".")[0] == "cryptography":
            raise ImportError(name)
        return plain(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    for work in (
        lambda: check(folder),
        lambda: signing.sign(folder / "m.tacit", folder / "key.pem"),
        lambda: signing.new_key(folder / "new.pem"),
    ):
        with pytest.raises(tacit.ConfigError, match=r"tacit\[sign\]"):
            work()


OPENSSL = shutil.which("openssl")


def openssl(*words: object, given: bytes = b"") -> bytes:
    line = [str(OPENSSL), *map(str, words)]
    return subprocess.run(line, input=given, capture_output=True, check=True).stdout


@pytest.mark.skipif(OPENSSL is None, reason="needs openssl")
def test_keys_of_openssl_sign_and_openssl_checks(folder: Path) -> None:
    """Another program makes the keys, finds the fingerprint and checks the signature."""
    key, public = folder / "o.pem", folder / "o.public.pem"
    openssl("genpkey", "-algorithm", "ed25519", "-out", key)
    openssl("pkey", "-in", key, "-pubout", "-out", public)
    made = signing.sign(folder / "m.tacit", key)
    assert signing.verify(folder / "m.tacit", public) == made
    der = openssl("pkey", "-pubin", "-in", public, "-outform", "DER")
    assert made.key == f"sha256:{hashlib.sha256(der).hexdigest()}"
    digest = hashlib.sha256((folder / "m.tacit").read_bytes()).digest()
    (folder / "message").write_bytes(b"tacit-signature/1\0" + digest)
    (folder / "bytes").write_bytes(bytes.fromhex(made.signature))
    words = ("pkeyutl", "-verify", "-pubin", "-inkey", public, "-rawin")
    said = openssl(*words, "-in", folder / "message", "-sigfile", folder / "bytes")
    assert b"Verified Successfully" in said


@pytest.mark.skipif(OPENSSL is None, reason="needs openssl")
def test_encrypted_keys_of_openssl(folder: Path) -> None:
    key = folder / "o.pem"
    openssl("genpkey", "-algorithm", "ed25519", "-aes256", "-pass", "pass:open", "-out", key)
    assert signing.is_encrypted(key)
    signing.sign(folder / "m.tacit", key, password="open")  # noqa: S106
