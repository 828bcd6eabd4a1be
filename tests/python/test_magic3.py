"""The experimental magic 3 in Python: nothing is lost, nothing else reads it, and its bytes are explained."""

from __future__ import annotations

from pathlib import Path

import magicbyte
import pytest
from conftest import Cli
from magicbyte import Compression, magic3
from magicbyte.cli.batch_layout import Field, batch_layout
from magicbyte.magic3 import KIP_931, Idea

EVERYTHING = Idea(sum(Idea))


def batches(count: int = 3, records: int = 5) -> bytes:
    builder = magicbyte.RecordsBuilder()
    written = b""
    # Two digits each, so that all batches have the same size.
    for base in range(10, 10 + count * records, records):
        for offset in range(base, base + records):
            headers = [("source", b"shop"), ("id", b"%d" % offset)]
            key = None if offset % 3 == 0 else b"key"
            builder.append(offset, 1_700_000_000_000 + offset, key, b"value %d" % offset, headers)
        written += builder.build()
    return written


def split(draft: bytes) -> list[bytes]:
    found = []
    while draft:
        size = 12 + int.from_bytes(draft[8:12], "big")
        found.append(draft[:size])
        draft = draft[size:]
    return found


@pytest.mark.parametrize("compression", Compression)
@pytest.mark.parametrize("ideas", [Idea(0), KIP_931, *(KIP_931 | idea for idea in Idea), EVERYTHING])
def test_nothing_is_lost(ideas: Idea, compression: Compression) -> None:
    plain = batches()
    draft = magic3.encode(plain, ideas, compression=compression)
    assert draft[21:23] == int(ideas | compression).to_bytes(2, "big")
    back = magic3.to_magic_2(draft)
    assert {batch.compression for batch in magicbyte.read_batches(back)} == {compression}
    rows = [
        [(r.offset, r.timestamp, r.key, r.value, r.headers) for b in magicbyte.read_batches(data) for r in b]
        for data in (plain, back)
    ]
    assert rows[0] == rows[1]
    validated = magic3.validate(draft)
    assert [one.records for one in validated] == [5, 5, 5]
    assert sum(one.null_keys for one in validated) == 5
    assert validated[2].max_timestamp == 1_700_000_000_024
    with pytest.raises(magicbyte.Error, match="magic 3 is not supported"):
        list(magicbyte.read_batches(draft))


def test_errors_say_where() -> None:
    draft = magic3.encode(batches())
    last = sum(map(len, split(draft)[:2]))
    damaged = draft[:-1] + b"\xff"
    for work in (magic3.to_magic_2, magic3.validate):
        with pytest.raises(magicbyte.Error, match=f"byte {last}"):
            work(damaged)
        with pytest.raises(magicbyte.Error, match="batchLength"):
            work(draft[:-1])
        with pytest.raises(magicbyte.Error, match="magic 2 is not supported"):
            work(batches())
        with pytest.raises(TypeError):
            work("text")  # type: ignore[arg-type]
    builder = magicbyte.RecordsBuilder(magic=1)
    builder.append(0, 0, value=b"old")
    old = builder.build()
    with pytest.raises(magicbyte.Error, match="only batches of magic 2"):
        magic3.encode(old)
    with pytest.raises((magicbyte.Error, ValueError), match="bits 7 to 12"):
        magic3.encode(batches(), Idea.TWO_SECTIONS | 1)
    with pytest.raises(magicbyte.Error):
        magic3.encode(batches()[:-1])


def test_comparing_formats() -> None:
    plain = batches()
    for magic in (0, 1, 2, 3):
        one = magic3.compare(plain, magic, compression=Compression.LZ4)
        assert one["records"] == 15
        assert min(one.values()) > 0
    assert magic3.compare(plain, 2)["size"] == len(plain)
    assert magic3.compare(plain, 3)["size"] == len(magic3.encode(plain))
    old, _ = magicbyte.convert.Converter(Compression.GZIP).down_convert(plain, 1)
    assert magic3.compare(plain, 1, compression=Compression.GZIP)["size"] == len(old)
    with pytest.raises(magicbyte.Error, match="zstd"):
        magic3.compare(plain, 1, compression=Compression.ZSTD)
    with pytest.raises(magicbyte.Error):
        magic3.compare(plain, 7)


@pytest.mark.parametrize("compression", [Compression.NONE, Compression.ZSTD])
def test_annotated_bytes(compression: Compression, tmp_path: Path, cli: Cli) -> None:
    draft = magic3.encode(batches(), EVERYTHING, compression=compression)
    first = split(draft)[0]
    fields = [part for part in batch_layout(first, 1 << 20, experimental_v3=True) if isinstance(part, Field)]
    assert b"".join(field.data for field in fields).startswith(first)
    (tmp_path / f"{0:020}.log").write_bytes(draft)
    text = cli("annotate", "--experimental-v3", tmp_path, "--offset", 17)
    assert text.count("baseOffset") == 1
    assert "value 17" in text
    assert "record 4: value" in text
    assert "no record attributes, tagged fields, both timestamps" in text
    assert "CRC-32C of byte 21 to the end: correct" in text
    # Without the option, it is refused as everywhere.
    cli("annotate", tmp_path, code=1)
    assert "magic 3 is not supported" in cli.error


def test_damage_is_annotated_up_to_it(tmp_path: Path, cli: Cli) -> None:
    draft = magic3.encode(batches(1), EVERYTHING, compression=Compression.ZSTD)
    (tmp_path / f"{0:020}.log").write_bytes(draft[:-3])
    text = cli("annotate", "--experimental-v3", tmp_path, code=1)
    assert "wrong, computed" in text
    assert "error: " in text
