"""Replacing a package's objects with others, and restoring them."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import Any

__all__ = ["Counts", "Patch"]


class Counts(dict[str, int]):
    """Counts of the data that a client's drop-in has read and built in this process.

    The keys are `batches_read`, `records_read`, `batches_built` and `records_built`.
    """

    def __init__(self, counts: Iterable[int]) -> None:
        names = ("batches_read", "records_read", "batches_built", "records_built")
        super().__init__(zip(names, counts, strict=True))


class Patch:
    """Replaces objects in all modules of one package, and restores them."""

    def __init__(self, package: str) -> None:
        self._package = package
        self._replaced: list[tuple[object, str, object]] = []

    @property
    def installed(self) -> bool:
        """True if the replacements are in place."""
        return bool(self._replaced)

    def install(
        self,
        replacements: Iterable[tuple[object, object]],
        by_name: Mapping[str, object],
        attributes: Iterable[tuple[object, str, object]],
    ) -> None:
        """Replaces objects, also for modules imported later.

        Args:
            replacements: originals, each with its replacement, under whatever name a module has them.
            by_name: replacements of objects with this name in any module, where the original may be None.
            attributes: an owner, the name of its attribute, and the new value.

        """
        if self.installed:
            return
        # By identity, as an equal object is not necessarily the original.
        by_id = {id(original): (original, replacement) for original, replacement in replacements}
        for module in self._modules():
            for name, value in list(vars(module).items()):
                if id(value) in by_id:
                    self._replace(module, name, by_id[id(value)][1])
                elif name in by_name:
                    self._replace(module, name, by_name[name])
        for owner, name, replacement in attributes:
            self._replace(owner, name, replacement)

    def _replace(self, owner: object, name: str, replacement: object) -> None:
        self._replaced.append((owner, name, getattr(owner, name)))
        setattr(owner, name, replacement)

    def uninstall(self) -> None:
        """Restores the originals. Objects created in the meantime keep their class."""
        while self._replaced:
            setattr(*self._replaced.pop())

    def _modules(self) -> list[object]:
        inside = self._package + "."
        loaded: Mapping[str, Any] = dict(sys.modules)
        return [m for name, m in loaded.items() if m and (name == self._package or name.startswith(inside))]
