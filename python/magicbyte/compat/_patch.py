"""Replacing a package's objects with others, and restoring them."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import Any

__all__ = ["Counts", "Patch"]


class Counts(dict[str, int]):
    """How much a client's drop-in has read and built in this process.

    The keys are `batches_read`, `records_read`, `batches_built` and `records_built`.
    """

    def __init__(self, counts: Iterable[int]) -> None:
        names = ("batches_read", "records_read", "batches_built", "records_built")
        super().__init__(zip(names, counts, strict=True))


class Patch:
    """Replaces objects in all modules of one package, under whatever name they have there."""

    def __init__(self, package: str) -> None:
        self._package = package
        self._replaced: list[tuple[object, str, object]] = []

    @property
    def installed(self) -> bool:
        """Whether the replacements are in place."""
        return bool(self._replaced)

    def install(self, replacements: Iterable[tuple[object, object]]) -> None:
        """Replaces the first object of each pair with the second, also for modules imported later."""
        if self.installed:
            return
        # By identity, as an equal object is not necessarily the original.
        by_id = {id(original): (original, replacement) for original, replacement in replacements}
        for module in self._modules():
            for name, value in list(vars(module).items()):
                if id(value) in by_id:
                    self._replaced.append((module, name, value))
                    setattr(module, name, by_id[id(value)][1])

    def uninstall(self) -> None:
        """Restores the originals. Objects created in the meantime keep their class."""
        while self._replaced:
            setattr(*self._replaced.pop())

    def _modules(self) -> list[object]:
        inside = self._package + "."
        loaded: Mapping[str, Any] = dict(sys.modules)
        return [m for name, m in loaded.items() if m and (name == self._package or name.startswith(inside))]
