"""Model files changed by hand, with the digest that a forger would give them."""

import hashlib
import json


def resealed(content: bytes) -> bytes:
    """The same file with a digest that is right, if it has one; shares no code with tacit."""
    size = int.from_bytes(content[:8], "little")
    if size > 2**20:  # made to be refused for its length
        return content
    try:
        facts = json.loads(json.loads(content[8 : 8 + size])["__metadata__"]["tacit"])
        stated = facts["digest"].removeprefix("sha256:").encode()
        at = content.index(stated) if len(stated) == 64 else -1
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return content
    if at < 0:
        return content
    blank = content[:at] + b"0" * 64 + content[at + 64 :]
    digest = hashlib.sha256(blank).hexdigest().encode()
    return content[:at] + digest + content[at + 64 :]


def without_digest(content: bytes) -> bytes:
    """The same model in format 1, as tacit wrote it before files had digests."""
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    facts = json.loads(header["__metadata__"]["tacit"])
    del facts["digest"]
    header["__metadata__"]["tacit"] = json.dumps(facts | {"format": "tacit-model/1"})
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + content[8 + size :]
