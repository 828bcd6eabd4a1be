"""Options of `merge`."""

from __future__ import annotations

from dataclasses import dataclass

from magicbyte.options.shared import Certified, ConfigFiles, Decoding, Epochs, Indexes, TopicIds

__all__ = ["MergeOptions"]


@dataclass(frozen=True, kw_only=True)
class MergeOptions(ConfigFiles, Epochs, TopicIds, Indexes, Certified, Decoding):
    """Options of a merge."""
