"""The private keys of encrypted segments in tiered storage. A job passes them to all of its processes."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable

from magicbyte import _core

__all__ = ["EncryptionKey", "add_encryption_key", "add_keys", "known_keys", "named_key"]


class EncryptionKey:
    """An RSA private key, with the ID that manifests name it by. Its text appears in no representation."""

    def __init__(self, pem: str, key_id: str | None) -> None:
        self._pem = pem
        self.key_id = key_id

    def __eq__(self, other: object) -> bool:
        return isinstance(other, EncryptionKey) and (self._pem, self.key_id) == (other._pem, other.key_id)

    def __hash__(self) -> int:
        return hash((self._pem, self.key_id))

    def __repr__(self) -> str:
        return f"<EncryptionKey {self.key_id or ''}>"

    def use(self) -> None:
        """Makes the key known to the core of this process."""
        _core.add_encryption_key(self._pem, self.key_id)


_LOCK = threading.Lock()
_KEYS: dict[EncryptionKey, None] = {}


def add_encryption_key(file: str | os.PathLike[str], key_id: str | None = None) -> None:
    """Makes a private key known, to read encrypted segments in tiered storage (Aiven's plugin).

    The key holds in this process, and in jobs started from it. It appears in no message, plan or report.

    Args:
        file: an RSA private key in PEM, PKCS #8 or PKCS #1, without a password.
        key_id: the ID that the plugin's key ring gives to the key. A key without one is tried for every ID
            that no other key has.

    Raises:
        ValueError: the file holds no such key.
        OSError: it cannot be read.

    """
    add_keys([_read_key(file, key_id)])


def named_key(text: str) -> EncryptionKey:
    """A key as options name it: `FILE`, or `ID=FILE`.

    Raises:
        OSError: the file cannot be read.

    """
    key_id, equals, file = text.partition("=")
    return _read_key(file, key_id) if equals and not os.path.exists(text) else _read_key(text, None)


def _read_key(file: str | os.PathLike[str], key_id: str | None) -> EncryptionKey:
    with open(file, encoding="ascii", errors="replace") as opened:
        return EncryptionKey(opened.read(), key_id)


def add_keys(keys: Iterable[EncryptionKey]) -> None:
    """Makes keys known in this process.

    Raises:
        ValueError: for what is no key.

    """
    with _LOCK:
        for key in keys:
            if key not in _KEYS:
                key.use()
                _KEYS[key] = None


def known_keys() -> tuple[EncryptionKey, ...]:
    """The keys that this process knows."""
    with _LOCK:
        return tuple(_KEYS)
