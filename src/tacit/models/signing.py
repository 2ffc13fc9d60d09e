"""Detached signatures of model files: who stands behind a certificate.

Ed25519 by the `cryptography` package, with keys in PEM files as openssl makes them. What is signed
is `tacit-signature/1`, a zero byte, and the 32 bytes of SHA-256 over the whole file, certificate
included; so a signature made here cannot pass for one of anything else made with the same key. The
signature file is a small JSON object: `format`, `algorithm`, `key` (the signer's fingerprint),
`file` (SHA-256 of the signed file) and `signature`, in hex.

A fingerprint is SHA-256 of the public key in DER (SubjectPublicKeyInfo). The one in a signature
file is a claim; only a public key that the reader got from the signer makes it worth anything.
"""

import hashlib
import hmac
import json
import os
import re
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from stat import S_ISREG
from typing import TYPE_CHECKING, Any

from tacit._atomic import reason_of, sync_folder, write_durably
from tacit.errors import ConfigError, MissingPackage, SignatureError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (
        Ed25519PrivateKey,
        Ed25519PublicKey,
    )

_FORMAT = "tacit-signature/1"
_LARGEST_SIGNATURE = 4096
_LARGEST_KEY = 1 << 16
_LARGEST_MODEL = 8 << 30
_LONGEST_PASSWORD = 1023  # of the library
_ENCRYPTED = b"BEGIN ENCRYPTED PRIVATE KEY"
_FIELDS = {
    "format": re.compile(re.escape(_FORMAT)),
    "algorithm": re.compile("ed25519"),
    "key": re.compile("sha256:[0-9a-f]{64}"),
    "file": re.compile("sha256:[0-9a-f]{64}"),
    "signature": re.compile("[0-9a-f]{128}"),
}
AnyPath = str | PathLike[str]


@dataclass(frozen=True)
class Signature:
    """What a signature file holds.

    Attributes:
        key: the fingerprint of the signer's public key.
        file: SHA-256 of the signed file.
        signature: 64 bytes in hex.
    """

    key: str
    file: str
    signature: str
    format: str = _FORMAT
    algorithm: str = "ed25519"


def sign(
    model: AnyPath, key: AnyPath, *, output: AnyPath | None = None, password: str | None = None
) -> Signature:
    """Sign a file and write the signature to `output` (the file's name with .sig if None).

    Args:
        model: the file to sign, all of it.
        key: the private key, in PEM.
        output: where the signature goes; an older signature there is replaced, nothing else is.
        password: what the key is encrypted with, if it is.

    Raises:
        ConfigError: a key that cannot be used, or an output that is something else already.
        SignatureError: a file that cannot be read.
    """
    target = signature_path(model) if output is None else Path(output)
    private = _private_key(Path(key), password)
    _check_target(target, Path(model), Path(key))
    digest = _file_digest(Path(model))
    made = Signature(
        _fingerprint(private.public_key()),
        f"sha256:{digest.hex()}",
        private.sign(_message(digest)).hex(),
    )
    fields = {name: getattr(made, name) for name in _FIELDS}
    try:
        write_durably(target, (json.dumps(fields, indent=2) + "\n").encode())
    except OSError as error:
        raise ConfigError(f"{target} cannot be written: {reason_of(error)}") from None
    return made


def verify(model: AnyPath, key: AnyPath, *, signature: AnyPath | None = None) -> Signature:
    """Return the signature of a file if it was made with the private half of this public key.

    It speaks of the bytes that were in the file just now. `signature` is the file's name with .sig
    if None.

    Raises:
        ConfigError: a key that cannot be used.
        SignatureError: no signature, a damaged one, one by another key or of another file.
    """
    public = _public_key(Path(key))
    place = signature_path(model) if signature is None else Path(signature)
    found = _read_signature(place)
    if found.key != _fingerprint(public):
        raise SignatureError(
            f"{place} was made with the key {found.key}, and {key} is {_fingerprint(public)}"
        )
    digest = _file_digest(Path(model))
    if not hmac.compare_digest(found.file, f"sha256:{digest.hex()}"):
        raise SignatureError(f"{place} is of another file than {model}, or {model} was changed")
    _check_signature(public, found, digest, place)
    return found


def new_key(path: AnyPath, *, password: str | None = None) -> str:
    """Make a key pair and return its fingerprint.

    The private key goes to `path`, which its owner alone may read; the public one beside it
    (`public_path`). Neither is written over anything.
    """
    _need_library()
    from cryptography.hazmat.primitives import serialization as forms
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    private = Ed25519PrivateKey.generate()
    lock = forms.NoEncryption() if password is None else _lock(password)
    secret = private.private_bytes(forms.Encoding.PEM, forms.PrivateFormat.PKCS8, lock)
    shown = private.public_key().public_bytes(
        forms.Encoding.PEM, forms.PublicFormat.SubjectPublicKeyInfo
    )
    _write_new(Path(path), secret, 0o600)
    try:
        _write_new(public_path(path), shown, 0o644)
    except ConfigError:
        Path(path).unlink(missing_ok=True)  # made above, and of no use alone
        raise
    return _fingerprint(private.public_key())


def public_path(key: AnyPath) -> Path:
    """Return where `new_key` puts the public key: key.pem has its in key.public.pem."""
    return Path(str(Path(key)).removesuffix(".pem") + ".public.pem")


def signature_path(model: AnyPath) -> Path:
    """Return where a signature is looked for: that of model.tacit in model.tacit.sig."""
    return Path(f"{Path(model)}.sig")


def is_encrypted(key: AnyPath) -> bool:
    """Say whether a private key needs a password."""
    return _ENCRYPTED in _read_key(Path(key))


def _message(digest: bytes) -> bytes:
    """What is signed: only what tacit signs begins like this, and its length is fixed."""
    return _FORMAT.encode() + b"\0" + digest


def _check_signature(
    public: "Ed25519PublicKey", found: Signature, digest: bytes, place: Path
) -> None:
    from cryptography.exceptions import InvalidSignature

    try:
        public.verify(bytes.fromhex(found.signature), _message(digest))
    except InvalidSignature:
        raise SignatureError(
            f"{place} is damaged or forged: its signature was not made with this key"
        ) from None


def _read_signature(path: Path) -> Signature:
    """Read a signature file; whatever is wrong with it is a SignatureError."""
    content = _content(path, "signature file", _LARGEST_SIGNATURE, SignatureError)
    try:
        value = json.loads(content.decode(), object_pairs_hook=_once_each)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict) or value.keys() != _FIELDS.keys():
        raise SignatureError(f"{path} is not a signature file; `tacit sign` makes one")
    for name, form in _FIELDS.items():
        if not isinstance(value[name], str) or not form.fullmatch(value[name]):
            raise SignatureError(f"{path} is not a valid signature file: see its {name!r}")
    return Signature(**value)


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a name is given twice")
    return dict(pairs)


def _file_digest(path: Path) -> bytes:
    """SHA-256 of a file of any size that a model may have."""
    try:
        _check_regular(path, _LARGEST_MODEL)
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").digest()
    except ValueError as error:
        raise SignatureError(f"model file {path} {error}") from None
    except OSError as error:
        raise SignatureError(f"model file {path} cannot be read: {reason_of(error)}") from None


def _content(path: Path, what: str, most: int, failure: type[Exception]) -> bytes:
    """Read a small file, and no more of it than it may have."""
    try:
        _check_regular(path, most)
        with path.open("rb") as file:
            return file.read(most)
    except ValueError as error:
        raise failure(f"{what} {path} {error}") from None
    except OSError as error:
        raise failure(f"{what} {path} cannot be read: {reason_of(error)}") from None


def _check_regular(path: Path, most: int) -> None:
    about = path.stat()
    if not S_ISREG(about.st_mode):
        raise ValueError("is a folder, a pipe or a device; expected a file")
    if about.st_size > most:
        raise ValueError(f"is too large; expected at most {most} bytes")


def _check_target(target: Path, *inputs: Path) -> None:
    """Refuse to write over an input, or over anything that is no signature."""
    if not target.exists():
        return
    if any(source.exists() and target.samefile(source) for source in inputs):
        raise ConfigError(f"output {target} is an input too; give another name")
    try:
        _read_signature(target)
    except SignatureError:
        raise ConfigError(
            f"output {target} exists and is no signature; give another name or remove it"
        ) from None


def _write_new(path: Path, content: bytes, mode: int) -> None:
    """Write a file that is not there yet, whole or not at all; a link at its name is no way in."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    try:
        descriptor = os.open(path, flags, mode)
    except FileExistsError:
        raise ConfigError(
            f"{path} exists; keys are never written over: give another name"
        ) from None
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {reason_of(error)}") from None
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        sync_folder(path.parent)
    except OSError as error:
        path.unlink(missing_ok=True)
        raise ConfigError(f"{path} cannot be written: {reason_of(error)}") from None


def _read_key(path: Path) -> bytes:
    return _content(path, "key file", _LARGEST_KEY, ConfigError)


def _private_key(path: Path, password: str | None) -> "Ed25519PrivateKey":
    content = _read_key(path)
    _need_library()
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    if b"BEGIN PUBLIC KEY" in content:
        raise ConfigError(f"key {path} is a public key; signing needs the private one")
    encrypted = _ENCRYPTED in content
    if encrypted and password is None:
        raise ConfigError(f"key {path} is encrypted; give its password")
    try:
        key = load_pem_private_key(
            content, os.fsencode(password) if encrypted and password else None
        )
    except (ValueError, TypeError, UnsupportedAlgorithm):
        wrong = (
            "the password is wrong, or it is damaged" if encrypted else "it is not a private key"
        )
        raise ConfigError(f"key {path}: {wrong}; expected Ed25519 in PEM") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise ConfigError(f"key {path} is of another kind; expected Ed25519: tacit sign --new-key")
    return key


def _public_key(path: Path) -> "Ed25519PublicKey":
    content = _read_key(path)
    _need_library()
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    if b"PRIVATE KEY" in content:
        raise ConfigError(f"key {path} is a private key; checking needs the public one, only")
    try:
        key = load_pem_public_key(content)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise ConfigError(f"key {path}: expected a public key, Ed25519 in PEM") from None
    if not isinstance(key, Ed25519PublicKey):
        raise ConfigError(f"key {path} is of another kind; expected Ed25519")
    return key


def _fingerprint(public: "Ed25519PublicKey") -> str:
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    content = public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def _lock(password: str) -> Any:
    from cryptography.hazmat.primitives.serialization import BestAvailableEncryption

    content = os.fsencode(password)
    if not 1 <= len(content) <= _LONGEST_PASSWORD:
        raise ConfigError(f"password: expected 1 to {_LONGEST_PASSWORD} bytes")
    return BestAvailableEncryption(content)


def _need_library() -> None:
    try:
        import cryptography  # noqa: F401
    except ImportError:
        raise MissingPackage("a signature", "cryptography", "sign") from None
