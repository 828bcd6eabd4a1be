"""The job of `magicbyte schemas infer`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypedDict

from magicbyte.errors import RefusedError
from magicbyte.jobs.find.choice import PartitionChoice
from magicbyte.jobs.find.partitions import find_inputs
from magicbyte.jobs.find.sample import first_records
from magicbyte.model.listings import Problem
from magicbyte.schema import framing
from magicbyte.schema.inference import Inference

__all__ = ["InferReport", "infer_schema"]


class InferReport(TypedDict):
    """The output of `magicbyte schemas infer --json`."""

    topic: str
    values: int
    """The values of the sample that are JSON, with or without the framing of a registry."""
    not_json: int
    nulls: int
    schema: dict[str, Any]
    problems: list[Problem]
    """What could not be read before the sample was complete."""


def infer_schema(
    sources: Sequence[str], topic: str, *, is_key: bool = False, sample: int = 10_000
) -> InferReport:
    """Proposes a JSON Schema for values or keys of a topic, from the first records of each partition.

    Args:
        sources: directories with the topic.
        topic: its name.
        is_key: look at keys.
        sample: the number of records, shared by the partitions.

    Raises:
        RefusedError: if the topic is not there, or no value of the sample is JSON.
        OSError: if a source cannot be read.

    """
    listings = find_inputs(sources, PartitionChoice(topics=(topic,))).listings
    inference, nulls = Inference(), 0
    problems: list[Problem] = []
    for record in first_records(listings, sample, problems):
        data = record.key_bytes if is_key else record.value_bytes
        if data is None:
            nulls += 1
            continue
        framed = framing.parse(data)
        inference.add(data if framed is None else framed.payload)
    if not inference.values:
        kind = "keys" if is_key else "values"
        raise RefusedError(f"none of the {inference.not_json} {kind} of {topic} that were read is JSON")
    title = f"{topic}-{'key' if is_key else 'value'}"
    return InferReport(
        topic=topic,
        values=inference.values,
        not_json=inference.not_json,
        nulls=nulls,
        schema=inference.schema(title),
        problems=problems,
    )
