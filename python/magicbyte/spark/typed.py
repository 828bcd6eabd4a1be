"""Typed keys and values: decoders that the driver makes and sends to the tasks."""

from __future__ import annotations

import logging
from typing import Any

from magicbyte.errors import Error, JobError, RefusedError
from magicbyte.jobs.find.partitions import list_partitions
from magicbyte.jobs.schemas import open_registry
from magicbyte.jobs.typed import column_decoders
from magicbyte.options.typed import TypedColumns
from magicbyte.schema.decoding import ColumnDecoder
from magicbyte.schema.http_registry import HttpRegistry
from magicbyte.schema.registry import StoredRegistry
from magicbyte.spark.cluster import ClusterWatch
from magicbyte.spark.given import OptionError
from magicbyte.spark.options import Options
from magicbyte.spark.paths import expand_paths

__all__ = [
    "Decoders",
    "SchemaLookup",
    "decoders_for",
    "decoders_of",
    "with_schemas",
]

_LOGGER = logging.getLogger("magicbyte.stream")

Decoders = tuple[ColumnDecoder, ...]


def decoders_for(options: Options) -> Decoders:
    """The decoders for a read. A registry is read into memory, since tasks may have no network.

    Raises:
        OptionError: if a topic has no schema, or the topics have different ones.
        InvalidSchemaError: if the reader's schema cannot be used.

    """
    typed = options.shape.typed
    if not typed:
        return ()
    try:
        return column_decoders(typed, _topics(options))
    except RefusedError as error:
        raise OptionError(str(error)) from None


def _topics(options: Options) -> set[str]:
    """The topics that are read."""
    if options.cluster is not None:
        return {topic for topic, _ in ClusterWatch.of(options.cluster, options).partitions()}
    paths = expand_paths(options.paths)
    options.mount(paths)
    listings = list_partitions(paths, distinct=True)
    places = ((listing["topic"], listing["partition"]) for listing in listings)
    return {topic for topic, partition in places if options.topics.take(topic, partition)}


def decoders_of(columns: tuple[str, ...], decoders: Decoders) -> Decoders:
    """The decoders that make one of these columns."""
    return tuple(decoder for decoder in decoders if not set(decoder.schema.names).isdisjoint(columns))


class SchemaLookup:
    """Queries the registry of a stream again, in the driver, for schemas added after the query began."""

    def __init__(self, typed: TypedColumns, decoders: Decoders) -> None:
        self._typed = typed
        self._known = decoders[0].registry.snapshot() if decoders else None
        self._live: HttpRegistry | None = None
        """The live registry, which caches the versions that it has requested."""

    def added(self) -> StoredRegistry | None:
        """The schemas that the decoders do not have yet; None if there are none.

        Without an answer, a warning is logged: the rows may not need any.
        """
        if self._known is None or self._typed.schema_registry is None:
            return None
        try:
            added = self._look(self._typed.schema_registry).since(self._known)
        except (Error, OSError, JobError) as error:
            _LOGGER.warning("the schema registry cannot be asked for new schemas: %s", error)
            return None
        return added if added.schemas or added.uuids or added.all_versions() else None

    def _look(self, source: str) -> StoredRegistry:
        if self._live is None:
            _, registry = open_registry([source], http=self._typed.http)
            if not isinstance(registry, HttpRegistry):
                return registry.snapshot()
            self._live = registry
        return self._live.all_schemas()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_live": None}


def with_schemas(decoders: Decoders, added: StoredRegistry | None) -> Decoders:
    """The same decoders with the schemas that a `SchemaLookup` has added."""
    if added is None or not decoders:
        return decoders
    registry = decoders[0].registry.snapshot().joined(added)
    return tuple(decoder.with_registry(registry) for decoder in decoders)
