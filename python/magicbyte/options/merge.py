"""Options of `merge`."""

from __future__ import annotations

from dataclasses import dataclass

from magicbyte.options.shared import Certified, Decoding, Epochs, Indexes, TopicConfigFile, TopicIds

__all__ = ["MergeOptions"]


@dataclass(frozen=True, kw_only=True)
class MergeOptions(TopicConfigFile, Epochs, TopicIds, Indexes, Certified, Decoding):
    """Options of a merge."""
