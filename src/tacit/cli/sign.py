"""tacit sign: sign a model file, or make a key pair."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from tacit.cli.options import AsJson, show_json
from tacit.cli.progress import Quiet, say
from tacit.errors import ConfigError, PrivacyError


def run(
    model: Annotated[
        Path | None, typer.Argument(metavar="MODEL", help="The model file to sign (.tacit).")
    ] = None,
    key: Annotated[
        Path | None, typer.Option(help="Your private key: Ed25519 in PEM, as openssl makes it.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Where the signature goes (MODEL.sig if left out)."),
    ] = None,
    new_key: Annotated[
        Path | None, typer.Option("--new-key", help="Make a key pair; never over another file.")
    ] = None,
    encrypt: Annotated[
        bool, typer.Option("--encrypt", help="Encrypt the new key with a password.")
    ] = False,
    password_env: Annotated[
        str | None,
        typer.Option(help="Environment variable with the key's password; asked for if left out."),
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,  # noqa: ARG001 - its callback has seen it
) -> None:
    """Sign a model file. Readers then know who stands behind its certificate."""
    if new_key is not None:
        _refuse({"MODEL": model, "--key": key, "--output": output}, "--new-key")
        _make_key(new_key, encrypt or password_env is not None, password_env, as_json)
    elif model is None or key is None:
        raise ConfigError("give MODEL and --key KEY to sign, or --new-key KEY to make a key")
    else:
        _refuse({"--encrypt": encrypt or None}, "--key")
        _sign(model, key, output, password_env, as_json)


def _refuse(given: dict[str, object], beside: str) -> None:
    for name, value in given.items():
        if value is not None:
            raise ConfigError(f"{name} cannot be given with {beside}")


def _make_key(path: Path, encrypt: bool, variable: str | None, as_json: bool) -> None:
    from tacit.models.signing import new_key, public_path

    password = _password(path, variable, new=True) if encrypt else None
    fingerprint = new_key(path, password=password)
    if as_json:
        show_json({"key": str(path), "public": str(public_path(path)), "signer": fingerprint})
        return
    say(f"wrote {path}, which is secret: who has it can sign in your name")
    say(f"wrote {public_path(path)}, for everyone who reads your models")
    say(f"fingerprint {fingerprint}")


def _sign(model: Path, key: Path, output: Path | None, variable: str | None, as_json: bool) -> None:
    from tacit.models.signing import is_encrypted, sign, signature_path

    promise = _promise_of(model)
    password = _password(key, variable) if is_encrypted(key) else None
    made = sign(model, key, output=output, password=password)
    target = signature_path(model) if output is None else output
    if as_json:
        show_json({"signature": str(target), "signer": made.key, "file": made.file})
        return
    say(f"signed {model}: {promise}")
    say(f"file   {made.file}")
    say(f"signer {made.key}")
    say(f"wrote {target}")


def _promise_of(model: Path) -> str:
    """Say what is signed; a promise that does not hold is not."""
    from tacit.models import load

    found = load(model)
    check = found.verify()
    if found.private and not check.holds:
        problems = "; ".join(check.problems)
        raise PrivacyError(f"{model} is not signed: its promise does not hold: {problems}")
    return repr(found)


def _password(key: Path, variable: str | None, *, new: bool = False) -> str:
    """Take a password from an environment variable, or ask for it."""
    if variable is not None:
        if not os.environ.get(variable):
            raise ConfigError(f"--password-env {variable}: no such environment variable is set")
        return os.environ[variable]
    if not sys.stdin.isatty():
        raise ConfigError(
            f"the key {key} needs a password and nobody can be asked; "
            "give --password-env NAME, an environment variable that holds it"
        )
    return str(
        typer.prompt(f"Password of {key}", hide_input=True, confirmation_prompt=new, err=True)
    )
