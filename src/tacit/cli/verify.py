"""tacit verify: what a model promises, recomputed; its digest; and its signature."""

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli.options import AsJson, ModelPath, show_json
from tacit.errors import ConfigError, SignatureError

if TYPE_CHECKING:
    from tacit.accounting.certificate import Verification
    from tacit.models import Model

_ABOVE = "see above"


@dataclass(frozen=True)
class _Signed:
    """What became of the signature: None if it was not checked."""

    valid: bool | None
    signer: str | None
    text: str


def run(
    model: ModelPath,
    key: Annotated[
        Path | None, typer.Option(help="The signer's public key (PEM): check the signature too.")
    ] = None,
    signature: Annotated[
        Path | None, typer.Option(help="The signature file (MODEL.sig if left out).")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check what a model promises. Recomputes epsilon; exit code 1 if it does not hold.

    With --key, also the signature by that key; exit code 1 if it is missing or not valid.
    """
    from tacit.models import load

    signed = _check_signature(model, key, signature)
    found = load(model)
    check = found.verify()
    if as_json:
        _show_json(found, check, signed)
    else:
        _show(found, check, signed)
    if not check.holds or signed.valid is False:
        raise typer.Exit(1)


def _check_signature(model: Path, key: Path | None, signature: Path | None) -> _Signed:
    from tacit.models.signing import signature_path, verify

    if key is None:
        if signature is not None:
            raise ConfigError(f"--signature {signature}: give --key too, the signer's public key")
        there = signature_path(model)
        about = f"{there} is there, but no --key" if there.exists() else "no --key was given"
        return _Signed(None, None, f"who made this file: {about} to check a signature with")
    try:
        found = verify(model, key, signature=signature)
    except SignatureError as error:
        return _Signed(False, None, str(error))
    return _Signed(True, found.key, f"made with the private key of {key}, {found.key}")


def _show_json(model: "Model", check: "Verification", signed: _Signed) -> None:
    problems = [*check.problems, *([signed.text] if signed.valid is False else [])]
    show_json(
        {
            "holds": check.holds,
            "epsilon": check.epsilon_claimed,
            "epsilon_recomputed": check.epsilon_recomputed,
            "problems": problems,
            "digest": model.digest,
            "signed": signed.valid,
            "signer": signed.signer,
        }
    )


def _show(model: "Model", check: "Verification", signed: _Signed) -> None:
    """Say first whether it holds, then what was checked, then what was not."""
    if signed.valid is False:
        typer.echo(f"SIGNATURE NOT VALID: {signed.text}")
    if check.holds:
        typer.echo(f"holds: the releases give {_claim(check)}")
    else:
        typer.echo("DOES NOT HOLD: " + "; ".join(check.problems))
    typer.echo("\nChecked")
    for name, text in _checked(model, check, signed):
        typer.echo(f"  {name:<10} {text}")
    typer.echo("\nNot checked")
    for text in _not_checked(model, signed):
        typer.echo(f"  - {text}")


def _checked(model: "Model", check: "Verification", signed: _Signed) -> list[tuple[str, str]]:
    """What was looked at, by name, and what came of it."""
    paid = "the releases that it needs are listed" if check.holds else _ABOVE
    lines = [
        ("releases", f"{len(model.certificate.releases)} listed, {_made(model)}"),
        ("", _release_names(model)),
        ("model", f"{model.algorithm}: {_arrays(model)}; {paid}"),
        ("epsilon", _epsilon(model, check)),
    ]
    if model.digest is not None:
        lines.append(("digest", f"{model.digest} matches the file"))
    if signed.valid is not None:
        lines.append(("signature", f"valid: {signed.text}" if signed.valid else _ABOVE))
    return lines


def _made(model: "Model") -> str:
    """How many releases the model is of; those of earlier refits are listed as one."""
    if model.certificate.earlier is None:
        return f"{model.releases} made by the fit"
    return f"{model.releases - 1} made by this fit, and one for all earlier refits"


def _release_names(model: "Model") -> str:
    """Names of releases without their number, and how many there are of each."""
    releases = (entry.release for entry in model.certificate.releases)
    counts = Counter(replace(release, index=()).name for release in releases)
    shown = (f"{name} ({count})" if count > 1 else name for name, count in counts.items())
    return ", ".join(shown) or "none"


def _arrays(model: "Model") -> str:
    """Names and shapes of the published arrays."""
    arrays, _ = model.rule.parts()
    return ", ".join(f"{name} {' x '.join(map(str, a.shape))}" for name, a in arrays.items())


def _claim(check: "Verification") -> str:
    """Say what epsilon was found, rounded up, and what is claimed, to its last digit."""
    from tacit.accounting.promise import recomputed, shown

    found, claimed = check.epsilon_recomputed or 0.0, check.epsilon_claimed or 0.0
    return f"epsilon {recomputed(found, claimed)}, and {shown(claimed)} is claimed"


def _epsilon(model: "Model", check: "Verification") -> str:
    from tacit.accounting.promise import recomputed, shown

    budget = model.certificate.budget
    if budget is None or check.epsilon_recomputed is None:
        return "none is claimed"
    each = "sensitivity and noise of each release"
    if model.certificate.earlier is not None:
        each += " of this fit and the stated cost of earlier refits"
    found = recomputed(check.epsilon_recomputed, budget.epsilon)
    return (
        f"{found} from {each}, at delta {shown(budget.delta)}; {shown(budget.epsilon)} is claimed"
    )


def _others(model: "Model") -> str:
    """Name the models whose costs are not in this certificate."""
    if model.certificate.earlier is None:
        return "other models of the same ratings, whose costs add up"
    return (
        "models of the same ratings other than this refit and the earlier ones that are listed: "
        "their costs add up"
    )


def _not_checked(model: "Model", signed: _Signed) -> list[str]:
    """What a reader must know otherwise, or take on trust."""
    lines = [
        "that the model was computed from these releases, with the sensitivities and the noise "
        "that are stated, and that nothing else was released: the word of whoever ran the fit",
        f"that what was taken as public is public: {len(model.certificate.public)} entries, shown "
        "by `tacit certificate`",
        _others(model),
    ]
    if model.digest is None:
        lines.append("damage: this file is of format 1 and carries no digest")
    if signed.valid is None:
        lines.append(signed.text)
    return lines
