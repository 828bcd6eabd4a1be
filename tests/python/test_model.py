"""The dictionaries of `magicbyte.model` and `magicbyte.lab` are what the core returns, field by field."""

from __future__ import annotations

import json
import shutil
import tarfile
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints, is_typeddict

import pytest
from conftest import KAFKA, PARTITIONS
from magicbyte import RecordsBuilder, _core, crc32c, lab, model
from magicbyte.jobs.run.reading import ReadOptions, decoded_problems, read_chunk

TYPES = [
    value
    for module in (model, lab)
    for name in module.__all__
    if is_typeddict(value := getattr(module, name))
]


class Seen:
    """Compares documents with types, and records what it has seen of each."""

    def __init__(self) -> None:
        self.fields: dict[tuple[type, str], set[type]] = {}

    def check(self, value: Any, expected: Any, where: str) -> None:
        """Compares a value and all values inside it with a type."""
        origin, arguments = get_origin(expected), get_args(expected)
        if origin in (Union, types.UnionType):
            if value is not None:
                self.check(value, self._member(value, arguments), where)
        elif origin is Literal:
            assert value in arguments, where
        elif origin is list:
            assert isinstance(value, list), where
            for number, one in enumerate(value):
                self.check(one, arguments[0], f"{where}[{number}]")
        elif origin is tuple:
            assert len(value) == len(arguments), where
            for one, argument in zip(value, arguments, strict=True):
                self.check(one, argument, where)
        elif origin is dict:
            for key, one in value.items():
                self.check(one, arguments[1], f"{where}.{key}")
        elif is_typeddict(expected):
            self._check_fields(value, expected, where)
        else:
            assert type(value) is expected, f"{where}: {value!r} is not {expected}"

    @staticmethod
    def _member(value: Any, members: tuple[Any, ...]) -> Any:
        """The one type of a union with None, or the dictionary of a union that has this `event`."""
        known = [one for one in members if one is not type(None)]
        if len(known) > 1:
            known = [one for one in known if get_args(get_type_hints(one)["event"]) == (value["event"],)]
        (member,) = known
        return member

    def _check_fields(self, value: dict[str, Any], expected: Any, where: str) -> None:
        hints = get_type_hints(expected)
        assert value.keys() == hints.keys(), f"{where} and {expected.__name__} differ"
        for name, hint in hints.items():
            self.fields.setdefault((expected, name), set()).add(type(value[name]))
            self.check(value[name], hint, f"{where}.{name}")


def documents(listing: str) -> Iterator[tuple[str, Any]]:
    """Every JSON document that the core makes of a listed partition, with its type."""
    yield listing, model.PartitionListing
    segments = [json.dumps(segment) for segment in json.loads(listing)["segments"]]
    surveys = [_core.survey_segment(segment) for segment in segments]
    yield from ((survey, model.Survey) for survey in surveys)
    continued = map(_core.survey_segment, segments, surveys)
    yield from ((survey, model.Survey) for survey in continued)
    for isolation_level, start, end in (("read_uncommitted", None, None), ("read_committed", 1, 10**6)):
        plan = _core.plan_partition(
            listing,
            surveys,
            isolation_level=isolation_level,
            start_offset=start,
            end_offset=end,
            chunk_bytes=1,
        )
        yield plan, model.PartitionPlan
        costs = [_core.chunk_cost(json.dumps(chunk)) for chunk in json.loads(plan)["chunks"]]
        yield from ((cost, lab.ChunkCost) for cost in costs)
        yield _core.cost_report(costs), lab.CostReport
        for chunk in json.loads(plan)["chunks"]:
            tried = _core.try_layouts(
                [json.dumps(chunk)], 0, [(0, None, None)], window_bytes=1 << 20, dictionary=True
            )
            yield tried, lab.Window
        results = []
        for chunk in json.loads(plan)["chunks"]:
            for item in read_chunk(json.dumps(chunk), ReadOptions(columns=("timestamp",))):
                if isinstance(item, str):
                    results.append(item)
                elif item.table == "problems":
                    yield json.dumps(decoded_problems(item.batch)), list[model.Problem]
        yield from ((result, model.ChunkResult) for result in results)
        yield _core.reconcile(plan, results), model.PartitionReconciliation
    builder = RecordsBuilder()
    builder.append(0, 0, value=b"v")
    history = _core.partition_history(
        listing,
        [_core.segment_history(segment) for segment in segments],
        now=1_800_000_000_000,
        transaction_max_timeout_ms=900_000,
        coordinated=[(4, "tx-17", "Ongoing")],  # of v2_txn
        bins=10,
        listed=10,
    )
    yield history, model.PartitionHistory


def check(listing: str, seen: Seen) -> None:
    for text, expected in documents(listing):
        seen.check(json.loads(text), expected, expected.__name__)


def listed(directory: Path) -> str:
    return _core.list_partition(directory, include_checkpoints=True)


@pytest.mark.parametrize("name", PARTITIONS)
def test_fields_are_those_of_the_core(name: str) -> None:
    check(listed(KAFKA / name), Seen())


def odd_partition(directory: Path) -> None:
    """A partition as no broker leaves it: damage, foreign files, sequences and timestamps that decrease."""
    builders = [
        RecordsBuilder(producer_id=5, producer_epoch=0, base_sequence=sequence) for sequence in (0, 9, 0)
    ]
    batches = []
    for number, builder in enumerate(builders):
        builder.append(10 * number, 5_000 - number, None, b"v" * 100)
        batches.append(bytearray(builder.build()))
    transactional = RecordsBuilder(producer_id=6, producer_epoch=0, base_sequence=0, is_transactional=True)
    transactional.append(30, 1, None, b"v")
    batches.append(bytearray(transactional.build()))
    bad = bytearray(batches[0])
    bad[-1] ^= 1
    bad[:8] = (40).to_bytes(8, "big")
    undecodable = bytearray(batches[0])
    undecodable[61] = 1  # the length of the first record is -1
    undecodable[:8] = (45).to_bytes(8, "big")
    undecodable[17:21] = crc32c(undecodable[21:]).to_bytes(4, "big")
    last = RecordsBuilder()
    last.append(50, 1, None, b"v")
    directory.mkdir()
    (directory / f"{0:020}.log").write_bytes(
        b"".join([*batches, bad, undecodable, last.build(), b"\0" * 100])
    )
    after = RecordsBuilder()
    after.append(70, 2**62, None, b"v")
    (directory / f"{70:020}.log").write_bytes(after.build())
    (directory / f"{70:020}.txnindex").write_bytes(b"\1")
    (directory / f"{0:020}.log.deleted").write_bytes(b"")


def large_partition(directory: Path) -> None:
    """A segment large enough to be cut."""
    directory.mkdir()
    with (directory / f"{0:020}.log").open("wb") as file:
        for offset in range(6):
            builder = RecordsBuilder()
            builder.append(offset, 1, None, bytes(2 << 20))
            file.write(builder.build())


def replicas(root: Path) -> list[str]:
    """Copies of a partition: a good one, one that is damaged in several ways, an empty one, another log."""
    batches = []
    for offset in range(8):
        builder = RecordsBuilder(producer_id=7, producer_epoch=0, base_sequence=offset)
        builder.append(offset, 1, None, b"v%d" % offset)
        batches.append(bytearray(builder.build()))
    damaged = [bytearray(batch) for batch in batches]
    damaged[1][-1] ^= 1
    damaged[3][12:16] = (9).to_bytes(4, "big")
    damaged[7][-1] ^= 1
    other = RecordsBuilder()
    other.append(5, 1, None, b"other")
    contents = [batches, damaged, [], [*batches[:5], other.build()]]
    for number, content in enumerate(contents):
        directory = root / f"{number}" / "t-0"
        directory.mkdir(parents=True)
        (directory / f"{0:020}.log").write_bytes(b"".join(content))
    return [listed(root / f"{number}" / "t-0") for number in range(len(contents))]


def merges(root: Path) -> Iterator[tuple[str, Any]]:
    """The documents of a merge, with their types."""
    listings = replicas(root)
    starts = [
        {"checkpoints": {**dict.fromkeys(get_type_hints(model.PartitionCheckpoints)), "log_start_offset": 1}},
        {},
    ]
    for start, cleaned_until in zip(starts, (-(1 << 63), 3), strict=True):
        given = [json.dumps({**json.loads(listing), **start}) for listing in listings]
        surveys = [
            [_core.survey_segment(json.dumps(s)) for s in json.loads(one)["segments"]] for one in given
        ]
        plans = [_core.plan_partition(*pair) for pair in zip(given, surveys, strict=True)]
        alignment = _core.align_copies(given, plans, cleaned_until=cleaned_until)
        yield alignment, model.Alignment
        yield _core.plan_merge(alignment, given, plans, cleaned_until=cleaned_until), model.MergePlan


def test_every_field_and_type_has_been_seen(tmp_path: Path) -> None:
    """Each field had a value of each of its types: the types name nothing that the core never returns."""
    seen = Seen()
    for name in PARTITIONS:
        check(listed(KAFKA / name), seen)
    odd_partition(tmp_path / "t-0")
    listing = listed(tmp_path / "t-0")
    check(listing, seen)
    names = get_type_hints(model.PartitionCheckpoints)
    for offset in (None, 1):
        # What a job adds to a listing, for the core to read.
        check(json.dumps({**json.loads(listing), "checkpoints": dict.fromkeys(names, offset)}), seen)
    # The segments are replaced by directories, then removed.
    for segment in json.loads(listing)["segments"]:
        Path(segment["path"]).unlink()
        Path(segment["path"]).mkdir()
    check(listing, seen)
    shutil.rmtree(tmp_path / "t-0")
    check(listing, seen)
    check(_core.unreadable_directory("t-0", "Permission denied"), seen)
    large_partition(tmp_path / "t-1")
    check(listed(tmp_path / "t-1"), seen)
    with tarfile.open(tmp_path / "t-1.tar", "w") as archive:
        archive.add(tmp_path / "t-1", "t-1")
    check(listed(tmp_path / "t-1.tar" / "t-1"), seen)
    for text, expected in merges(tmp_path / "replicas"):
        seen.check(json.loads(text), expected, expected.__name__)
    found = _core.find_runs(tmp_path / "replicas/0/t-0" / f"{0:020}.log", 10, "[]")
    seen.check(json.loads(found), model.FoundRuns, "FoundRuns")
    # A disk that cannot be read is not to be had in a test.
    seen.fields[model.FoundRuns, "unreadable"].add(str)
    for expected in TYPES:
        never = []
        for name, hint in get_type_hints(expected).items():
            values = seen.fields.get((expected, name), set())
            never += [name] if not values - {type(None)} else []
            never += [f"{name}: None"] if type(None) in get_args(hint) and type(None) not in values else []
        assert not never, expected.__name__


def test_every_type_is_exported() -> None:
    defined = {name for module in (model, lab) for name, value in vars(module).items() if is_typeddict(value)}
    assert defined == {one.__name__ for one in TYPES}
