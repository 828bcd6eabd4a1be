"""The job of `magicbyte schemas infer`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypedDict

from magicbyte.enums import Framing
from magicbyte.errors import RefusedError
from magicbyte.jobs.find.choice import PartitionChoice
from magicbyte.jobs.find.partitions import find_inputs
from magicbyte.jobs.find.sample import first_rows
from magicbyte.model.listings import Problem
from magicbyte.schema.inference import Inference

__all__ = ["InferReport", "infer_schema"]


class InferReport(TypedDict):
    """The output of `magicbyte schemas infer --json`."""

    topic: str
    values: int
    """The values of the sample that are JSON, with or without the framing of a registry."""
    not_json: int
    """Those that are not, as `decode` reads JSON; `NaN` and half of a surrogate pair are not."""
    nulls: int
    schema: dict[str, Any]
    problems: list[Problem]
    """Problems of reading before the sample was complete."""


def infer_schema(
    sources: Sequence[str],
    topic: str,
    *,
    is_key: bool = False,
    sample: int = 10_000,
    framing: Framing = "auto",
) -> InferReport:
    """Proposes a JSON Schema for values or keys of a topic, from the first records of each partition.

    Each value counted as JSON is valid by the schema, and is read by it.

    Args:
        sources: directories with the topic.
        topic: its name.
        is_key: look at keys.
        sample: the number of records, shared by the partitions. If one has fewer, the others give more.
        framing: how the values or keys name their schemas; docs/schemas.md lists the framings.

    Raises:
        RefusedError: if the topic is not there, or no value of the sample is JSON.
        OSError: if a source cannot be read.

    """
    listings = find_inputs(sources, PartitionChoice(topics=(topic,))).listings
    inference = Inference(framing, is_key=is_key)
    problems: list[Problem] = []
    for rows in first_rows(listings, ["key" if is_key else "value", "headers"], sample, problems):
        inference.add_batch(rows)
    if not inference.values:
        kind = "keys" if is_key else "values"
        raise RefusedError(f"none of the {inference.not_json} {kind} of {topic} that were read is JSON")
    title = f"{topic}-{'key' if is_key else 'value'}"
    return InferReport(
        topic=topic,
        values=inference.values,
        not_json=inference.not_json,
        nulls=inference.nulls,
        schema=inference.schema(title),
        problems=problems,
    )
