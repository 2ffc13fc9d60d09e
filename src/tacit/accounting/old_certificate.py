"""Certificates of older versions: the kind of a release is read from its name.

Nothing but `Certificate.from_json` may use it.
"""

import re
from collections.abc import Mapping

from tacit.accounting.release import Release, ReleaseKind

_LONGEST = 200
_NUMBER = r"[0-9]{1,9}"
_NAME = re.compile(rf"((?:candidate {_NUMBER}: )*)(.+?)((?: {_NUMBER}(?:\.{_NUMBER})*)?)")
_USERS = re.compile(rf"({_NUMBER}), public under this relation")
_BY = re.compile(r"by the release '([^']+)'")


def release_of_name(name: str) -> Release:
    """Return the release that had this name; one that is not known is of the kind OTHER.

    >>> release_of_name("candidate 2: product 3.1")
    Release(kind=<ReleaseKind.PRODUCT: 'product'>, index=(3, 1), part=(2,), label='')
    >>> release_of_name("what is that 7").kind
    <ReleaseKind.OTHER: 'other'>
    """
    found = _NAME.fullmatch(name[:_LONGEST])
    if found and found[2] != ReleaseKind.OTHER and found[2] in list(ReleaseKind):
        part, index = (tuple(map(int, re.findall(_NUMBER, found[at]))) for at in (1, 3))
        release = Release(ReleaseKind(found[2]), index, part)
        if release.name == name:
            return release
    return Release(ReleaseKind.OTHER, label=name)


def sources_in_text(public: Mapping[str, str]) -> dict[str, Release]:
    """Return which lines of what is public name a release that they come from.

    >>> sources_in_text({"row_norm": "paid for by the release 'row norms'"})["row_norm"].name
    'row norms'
    """
    found = {name: _BY.search(why) for name, why in public.items()}
    return {name: release_of_name(match[1]) for name, match in found.items() if match}


def users_in_text(public: Mapping[str, str]) -> int | None:
    """Return how many users there were, if what is public says so.

    >>> users_in_text({"number of users": "30, public under this relation"})
    30
    """
    found = _USERS.fullmatch(public.get("number of users", ""))
    return int(found[1]) if found else None
