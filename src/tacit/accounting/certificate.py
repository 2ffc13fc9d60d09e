"""The certificate: what was promised, what was released, and what was taken as public.

It is made of public numbers only, and it is enough for anyone to recompute epsilon.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from itertools import groupby
from typing import Any

from tacit._damaged import MALFORMED
from tacit.accounting.budget import LARGEST_MU, Accounting, PrivacyBudget, epsilon_of
from tacit.accounting.ledger import Entry, Ledger
from tacit.accounting.old_certificate import release_of_name, sources_in_text, users_in_text
from tacit.accounting.promise import (
    Grade,
    grade_of,
    promise,
    recomputed,
    rounded_down,
    rounded_up,
    shown,
    too_weak,
)
from tacit.accounting.release import Release, ReleaseKind
from tacit.errors import ModelFileError, TacitError

SEEDED = "its noise was drawn from a seed, which undoes it"
IDEALISED = "its noise was drawn in floating point, whose low bits can leak"
"""Why a model is not private that was made with such noise."""

_FORMAT = "tacit-certificate/1"
_UNREADABLE = (TacitError, *MALFORMED)
_RELATIVE = 1e-9
_MOST = 1e140
_UNIT = "user: all ratings of one person, together"
_SEEDED_WORDS = "integer statistics, and an exact Gaussian on their grid, from a seed"
_RELATION = {
    "replace": "one user's whole row is exchanged for any other row; the number of users is public",
    "add_remove": "one user's whole row is emptied or filled; the number of users is protected",
}
_NUMERICS = {
    "exact": "integer statistics, and an exact Gaussian on their grid, "
    "from the operating system's cryptographic generator",
    "idealised": "floating-point Gaussian noise: its low bits can leak, for experiments only",
}


@dataclass(frozen=True)
class Verification:
    """What `Certificate.verify` found."""

    holds: bool
    epsilon_claimed: float | None
    epsilon_recomputed: float | None
    problems: tuple[str, ...]
    catalogue: str = ""
    """Where the list of items comes from, in the words of the certificate."""


@dataclass(frozen=True)
class Method:
    """The algorithm of a fit as a machine reads it: its name, and its settings as given.

    A setting is None, a truth value, a number, a text, or a tuple of such.
    """

    name: str
    settings: Mapping[str, Any]

    @classmethod
    def of(cls, config: Any) -> "Method":
        """Describe a frozen config; what has no plain form (of a foreign config) is left out."""
        names = [each.name for each in fields(config)] if is_dataclass(config) else []
        settings = {name: getattr(config, name) for name in names}
        plain = {name: value for name, value in settings.items() if _is_plain(value)}
        return cls(str(config.name), plain)

    @classmethod
    def from_json(cls, name: object, settings: object) -> "Method":
        """Read a name and settings from a file, trusting neither."""
        if not isinstance(name, str) or not isinstance(settings, dict):
            raise ModelFileError("the algorithm and its settings cannot be read")
        values = {
            each: tuple(value) if isinstance(value, list) else value
            for each, value in settings.items()
        }
        if not all(_is_plain(value) for value in values.values()):
            raise ModelFileError("a setting of the algorithm is of no known type")
        return cls(name, values)


def _is_plain(value: object) -> bool:
    """Whether a setting is a plain value that JSON can hold, or a tuple of such."""
    if isinstance(value, tuple):
        return all(_is_plain(part) and not isinstance(part, tuple) for part in value)
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or isinstance(value, bool | int | str)


@dataclass(frozen=True)
class Certificate:
    """The statement that goes with a published model.

    Attributes:
        budget: what was promised; None for a model that is NOT PRIVATE.
        releases: every release with its sensitivity, noise sd and cost.
        public: what was taken as public, by name, and why that is so.
        numerics: "exact" or "idealised".
        reasons_not_private: why this model must not be called private, if it must not. A promise
            that is too weak is one of them, however the certificate was made.
        sources: which of the lines of `public` come from a release, and from which.
        method: the algorithm and its settings; of a search, those of the winner. None for models
            of older versions.
        users: how many users there were, where the relation makes that public.
    """

    budget: PrivacyBudget | None
    releases: tuple[Entry, ...]
    public: Mapping[str, str]
    numerics: str = "exact"
    reasons_not_private: tuple[str, ...] = ()
    sources: Mapping[str, Release] = field(default_factory=dict)
    method: Method | None = None
    users: int | None = None

    def __post_init__(self) -> None:
        """Refuse to call something private whose numbers or noise promise nothing to speak of."""
        if self.numerics == "idealised" and IDEALISED not in self.reasons_not_private:
            object.__setattr__(self, "reasons_not_private", (*self.reasons_not_private, IDEALISED))
        reason = too_weak(self.budget, self.mu) if self.budget is not None else ""
        if reason and reason not in self.reasons_not_private:
            object.__setattr__(self, "reasons_not_private", (*self.reasons_not_private, reason))

    @property
    def private(self) -> bool:
        """Whether the promise may be made at all."""
        return self.budget is not None and not self.reasons_not_private

    @property
    def grade(self) -> Grade:
        """How much the promise is worth; NONE where none is made."""
        if self.budget is None or not self.private:
            return Grade.NONE
        return grade_of(self.budget, self.mu)

    @property
    def mu(self) -> float:
        """The total cost of all releases."""
        return math.sqrt(math.fsum(entry.mu**2 for entry in self.releases))

    @property
    def exact_epsilon(self) -> float:
        """The epsilon that the releases really give at the promised delta."""
        return math.inf if self.budget is None else epsilon_of(self.mu, self.budget.delta)

    @property
    def earlier(self) -> Entry | None:
        """What stands for all releases of earlier refits, in the certificate of a refit."""
        kind = ReleaseKind.EARLIER_REFITS
        return next((entry for entry in self.releases if entry.release.kind is kind), None)

    @classmethod
    def of(
        cls,
        ledger: Ledger,
        public: Mapping[str, str],
        numerics: str,
        reasons: tuple[str, ...],
        *,
        sources: Mapping[str, Release] | None = None,
        method: Method | None = None,
        users: int | None = None,
    ) -> "Certificate":
        """Close a fit's book."""
        if ledger.budget is None:
            reasons = ("no noise was added: it was fitted with no privacy budget", *reasons)
        entries, known = ledger.entries, dict(sources or {})
        return cls(ledger.budget, entries, dict(public), numerics, reasons, known, method, users)

    def resting_on(self, cost: float) -> "Certificate":
        r"""Return the certificate of a model that rests on earlier releases, too.

        A function of this fit's releases and of earlier ones of total cost $\mu'^2$ (`cost`) is
        as private as all of them together: $\sqrt{\mu^2 + \mu'^2}$ (docs/privacy/proofs.md, Lemma
        32). The earlier ones are listed as one release of unit noise, and epsilon is that of all.
        """
        if self.budget is None or cost <= 0:
            return self
        entry = Entry(Release(ReleaseKind.EARLIER_REFITS), math.sqrt(cost), 1.0)
        listed = replace(self, releases=(entry, *self.releases))
        exact = max(listed.exact_epsilon, self.budget.epsilon)
        scale = 10.0 ** (5 - math.floor(math.log10(exact)))
        epsilon = math.ceil(exact * scale) / scale  # six digits, rounded up
        return replace(listed, budget=replace(self.budget, epsilon=epsilon))

    def to_json(self) -> dict[str, Any]:
        """Return the machine's form; `from_json` reads it back."""
        budget = self.budget
        return {
            "format": _FORMAT,
            "private": self.private,
            "grade": self.grade.value,
            "not_private_because": list(self.reasons_not_private),
            "unit": _UNIT,
            "epsilon": budget.epsilon if budget else None,
            "delta": budget.delta if budget else None,
            "neighbours": budget.neighbours.value if budget else None,
            "accounting": budget.accounting.value if budget else None,
            "exact_epsilon": self.exact_epsilon if budget else None,
            "mu": self.mu if budget else None,
            "numerics": self.numerics,
            "releases": [_entry_json(entry, budget) for entry in self.releases],
            "public": dict(self.public),
            "users": self.users,
            "sources": {name: release.to_json() for name, release in self.sources.items()},
            "algorithm": self.method.name if self.method else None,
            "settings": dict(self.method.settings) if self.method else None,
            "promise": self.promise(),
        }

    @classmethod
    def from_json(cls, value: object) -> "Certificate":
        """Read the machine's form; anything unsound is a ModelFileError."""
        try:
            return _parse(value)
        except _UNREADABLE as error:
            raise ModelFileError(f"the certificate cannot be read: {error}") from None

    def verify(self) -> Verification:
        """Recompute epsilon from the listed releases and compare it with the claim.

        It checks what is written: that every listed release has noise, that their costs give no
        more than the claimed epsilon, that a release which something is said to come from is
        listed, and that the promise is worth calling one. It cannot check that the stated
        sensitivities and noise are those of the fit.
        """
        problems = [f"not private: {reason}" for reason in self.reasons_not_private]
        problems += self._named_but_missing()
        catalogue = self.public.get("catalogue", "")
        if self.budget is None:
            return Verification(False, None, None, tuple(problems), catalogue)
        problems += [f"release {e.name!r} has no noise" for e in self.releases if e.noise_sd <= 0]
        if LARGEST_MU < self.mu < math.inf:
            problems.append(
                f"the releases cost mu = {rounded_up(self.mu)}; the exactness of the noise is "
                f"proven up to {LARGEST_MU:g}"
            )
        found = self.exact_epsilon
        if not found <= self.budget.epsilon * (1 + _RELATIVE):
            problems.append(f"the releases give epsilon {rounded_up(found)}, above the claim")
        return Verification(not problems, self.budget.epsilon, found, tuple(problems), catalogue)

    def _named_but_missing(self) -> list[str]:
        """Say which releases something is said to come from that are not listed."""
        listed = {entry.release for entry in self.releases}
        return [
            f"{name} comes from a release {release.name!r} that is not listed"
            for name, release in self.sources.items()
            if release not in listed
        ]

    def promise(self) -> list[str]:
        """Return, in plain sentences, what is promised and what is not."""
        if self.budget is None or not self.private:
            return [
                "This model is NOT PRIVATE: it makes no promise to anyone whose ratings it used.",
                *(f"Why: {reason}." for reason in self.reasons_not_private),
            ]
        return promise(self.budget, self.mu, refit=self.earlier is not None)

    def text(self) -> str:
        """Return the person's form."""
        lines = ["PRIVACY CERTIFICATE" if self.private else "NOT PRIVATE", ""]
        lines += [f"  {sentence}" for sentence in self.promise()]
        if self.budget is not None:
            lines += ["", *_fact_lines(self, self.budget)]
        lines += ["", f"  Releases ({len(self.releases)}), each with what it cost (mu):"]
        lines += _entry_lines(self.releases)
        lines += ["", "  Taken as public:"]
        lines += [f"    {name}: {why}" for name, why in self.public.items()]
        return "\n".join(lines)


def _entry_json(entry: Entry, budget: PrivacyBudget | None) -> dict[str, Any]:
    return {
        **entry.release.to_json(),
        "sensitivity": entry.sensitivity,
        "noise_sd": entry.noise_sd,
        "mu": entry.mu if budget else None,
    }


def _entry_lines(releases: tuple[Entry, ...]) -> list[str]:
    """One line for each release, or for a run of them that are alike but for their number."""

    def alike(entry: Entry) -> tuple[Release, float, float]:
        return replace(entry.release, index=()), entry.sensitivity, entry.noise_sd

    lines = []
    for _, group in groupby(releases, alike):
        run = list(group)
        first, last = run[0], run[-1]
        name = first.name if first is last else f"{first.name} to {last.release.number}"
        cost = f"mu {rounded_up(first.mu, 4)}" if math.isfinite(first.mu) else "no noise"
        each = "" if first is last else " each"
        bound, noise = rounded_up(first.sensitivity), rounded_down(first.noise_sd)
        facts = f"sensitivity {bound}, noise sd {noise}"
        if first.release.kind is ReleaseKind.EARLIER_REFITS:
            facts = "all of their releases that this model uses, together"
        lines.append(f"    {name}: {facts}, {cost}{each}")
    return lines


def _fact_lines(certificate: Certificate, budget: PrivacyBudget) -> list[str]:
    return [
        f"  Privacy unit:  {_UNIT}",
        f"  Neighbours:    {budget.neighbours.value}: {_RELATION[budget.neighbours]}",
        f"  Epsilon:       {shown(budget.epsilon)}",
        f"  Delta:         {shown(budget.delta)}",
        f"  Accountant:    {_accountant(budget)}",
        f"  Total cost:    mu = {rounded_up(certificate.mu)}, which is epsilon = "
        f"{recomputed(certificate.exact_epsilon, budget.epsilon)} at this delta",
        f"  Numerics:      {certificate.numerics}: {_numerics(certificate)}",
    ]


def _numerics(certificate: Certificate) -> str:
    """Say how noise was drawn; noise from a seed is not from the system's generator."""
    if certificate.numerics == "exact" and SEEDED in certificate.reasons_not_private:
        return _SEEDED_WORDS
    return _NUMERICS[certificate.numerics]


def _accountant(budget: PrivacyBudget) -> str:
    if budget.accounting is Accounting.EXACT:
        return "exact composition of Gaussian releases"
    return "the paper's formula, which adds more noise than needed"


def _parse(value: object) -> Certificate:
    if not isinstance(value, dict) or value.get("format") != _FORMAT:
        raise ModelFileError(f"expected the format {_FORMAT!r}")
    budget = None
    if value["epsilon"] is not None:
        budget = PrivacyBudget(
            value["epsilon"], value["delta"], value["neighbours"], value["accounting"]
        )
    if value["numerics"] not in _NUMERICS:
        raise ModelFileError("unknown numerics")
    reasons = tuple(str(reason) for reason in value["not_private_because"])
    if value["private"] != (budget is not None and not reasons):
        raise ModelFileError("it contradicts itself on whether the model is private")
    public = {str(name): str(why) for name, why in value["public"].items()}
    return Certificate(
        budget,
        tuple(_parse_entry(entry) for entry in value["releases"]),
        public,
        str(value["numerics"]),
        reasons,
        _parse_sources(value, public),
        _parse_method(value),
        _parse_users(value, public),
    )


def _parse_sources(value: Mapping[str, Any], public: Mapping[str, str]) -> dict[str, Release]:
    if "sources" not in value:
        return sources_in_text(public)
    return {str(name): Release.from_json(each) for name, each in value["sources"].items()}


def _parse_method(value: Mapping[str, Any]) -> Method | None:
    if value.get("algorithm") is None:
        return None
    return Method.from_json(value["algorithm"], value["settings"])


def _parse_users(value: Mapping[str, Any], public: Mapping[str, str]) -> int | None:
    users = value["users"] if "users" in value else users_in_text(public)
    if users is not None and not (type(users) is int and users >= 0):
        raise ModelFileError("the number of users is not a number")
    return users


def _parse_entry(value: Mapping[str, Any]) -> Entry:
    sensitivity, sd = float(value["sensitivity"]), float(value["noise_sd"])
    if not (math.isfinite(sensitivity) and math.isfinite(sd) and sensitivity > 0 and sd >= 0):
        raise ModelFileError("a release has an impossible sensitivity or noise")
    known = "kind" in value
    release = Release.from_json(value) if known else release_of_name(str(value["name"]))
    entry = Entry(release, sensitivity, sd)
    if _MOST < entry.mu < math.inf:  # its square would pass what a float can hold
        raise ModelFileError("a release has an impossible cost")
    stated = value["mu"]
    if stated is not None and not math.isclose(entry.mu, stated, rel_tol=_RELATIVE):
        raise ModelFileError(f"the cost of release {entry.name!r} is not sensitivity / noise sd")
    return entry
