r"""Encrypted partial sums, for transport between the trusted processes of one fit.

Workers of a cluster hold rows, and so are as trusted as the mechanism. What lies between them is
not: queues, object stores, files that a queue spills to, core dumps, logs of a transport. A sealed
sum shows nothing there. With a key $k$ of 32 bytes that exists for one fit and is known to its
processes only, and 16 fresh random bytes $r$,

$$c = m \oplus \mathrm{SHAKE256}(k_1 \| r), \qquad t = \mathrm{HMAC\text{-}SHA256}(k_2, r \| c),$$

where $k_1, k_2$ are derived from $k$. That is a stream cipher and a tag over what was encrypted,
from the standard library alone. The tag also finds what was cut, mixed up or changed on its way.
Who has the key can open a seal. It is no defence against a worker that is not trusted.
"""

import hashlib
import hmac
import secrets

import numpy as np

from tacit.errors import EngineError

_KEY, _NONCE, _TAG = 32, 16, 32


def new_key() -> bytes:
    """Return a key for one fit."""
    return secrets.token_bytes(_KEY)


def seal(content: bytes, key: bytes) -> bytes:
    """Return sealed content; no two seals of the same content are alike."""
    nonce = secrets.token_bytes(_NONCE)
    hidden = nonce + _masked(content, key, nonce)
    return _tag(hidden, key) + hidden


def unseal(sealed: bytes, key: bytes) -> bytes:
    """Return the content, or refuse what was not sealed with this key."""
    tag, hidden = sealed[:_TAG], sealed[_TAG:]
    if len(hidden) < _NONCE or not hmac.compare_digest(tag, _tag(hidden, key)):
        raise EngineError("a sealed sum was changed on its way, or belongs to another fit")
    return _masked(hidden[_NONCE:], key, hidden[:_NONCE])


def _derived(key: bytes, purpose: bytes) -> bytes:
    if len(key) != _KEY:
        raise EngineError(f"a key of {len(key)} bytes: expected {_KEY}, as new_key() gives")
    return hashlib.sha256(purpose + key).digest()


def _masked(content: bytes, key: bytes, nonce: bytes) -> bytes:
    stream = hashlib.shake_256(_derived(key, b"mask") + nonce).digest(len(content))
    return (np.frombuffer(content, np.uint8) ^ np.frombuffer(stream, np.uint8)).tobytes()


def _tag(hidden: bytes, key: bytes) -> bytes:
    return hmac.digest(_derived(key, b"tag"), hidden, "sha256")
