"""Putting other objects in the place of a package's own, and back."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import Any

__all__ = ["Counts", "Patch"]


class Counts(dict[str, int]):
    """What went through a client's drop-in since the process began.

    `batches_read`, `records_read`: decoded; `batches_built`, `records_built`: built.
    """

    def __init__(self, counts: Iterable[int]) -> None:
        names = ("batches_read", "records_read", "batches_built", "records_built")
        super().__init__(zip(names, counts, strict=True))


class Patch:
    """Replaces objects wherever the modules of one package have them under any name."""

    def __init__(self, package: str) -> None:
        self._package = package
        self._replaced: list[tuple[object, str, object]] = []

    @property
    def installed(self) -> bool:
        """Whether the replacements are in place."""
        return bool(self._replaced)

    def install(self, replacements: Iterable[tuple[object, object]]) -> None:
        """Puts each second object where the first is. Modules imported later find it there too."""
        if self.installed:
            return
        # By identity: most of these are classes, but an equal object need not be the same one.
        by_id = {id(original): (original, replacement) for original, replacement in replacements}
        for module in self._modules():
            for name, value in list(vars(module).items()):
                if id(value) in by_id:
                    self._replaced.append((module, name, value))
                    setattr(module, name, by_id[id(value)][1])

    def uninstall(self) -> None:
        """Puts the originals back. Objects that were made meanwhile stay what they are."""
        while self._replaced:
            setattr(*self._replaced.pop())

    def _modules(self) -> list[object]:
        inside = self._package + "."
        loaded: Mapping[str, Any] = dict(sys.modules)
        return [m for name, m in loaded.items() if m and (name == self._package or name.startswith(inside))]
