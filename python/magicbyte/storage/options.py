"""Storage options: credentials, endpoints and the like, passed on to the library that reaches a store."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

__all__ = ["StorageOptions"]

_SECRET = re.compile(
    r"key|secret|token|password|passwd|passphrase|sas|credential|auth|account", re.IGNORECASE
)
_SHORTEST_SECRET = 4


class StorageOptions(Mapping[str, str]):
    """Options by name. Their values appear in no representation, so that none ends up in a log or a plan."""

    def __init__(self, options: Mapping[str, str] | None = None) -> None:
        self._options = {str(name): str(value) for name, value in (options or {}).items()}

    def __getitem__(self, name: str) -> str:
        return self._options[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._options)

    def __len__(self) -> int:
        return len(self._options)

    def __hash__(self) -> int:
        return hash(frozenset(self._options.items()))

    def __repr__(self) -> str:
        return f"<StorageOptions {', '.join(self._options)}>"

    def redacted(self, text: str) -> str:
        """The text without the values of options that may be secret."""
        for name, value in self._options.items():
            if len(value) >= _SHORTEST_SECRET and _SECRET.search(name):
                text = text.replace(value, "***")
        return text
