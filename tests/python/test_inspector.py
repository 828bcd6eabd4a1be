"""The byte inspector in a browser: every segment of the fixtures, damage, and files that are none."""

from __future__ import annotations

import os
import random
import re
from collections.abc import Iterator
from pathlib import Path

import magicbyte
import pytest
from conftest import KAFKA
from devtools import Tab
from digest import expected
from kafka_dumps import DUMPS
from test_dump_bytes import hello_world

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "target/inspector/inspector.html"
SEGMENTS = [*sorted(KAFKA.glob("*/*.log")), *sorted((ROOT / "samples").glob("*/*.log"))]

pytestmark = pytest.mark.inspector


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    assert PAGE.exists(), "make inspector"
    with Tab(tmp_path_factory.mktemp("profile")) as tab:
        tab.open(PAGE.as_uri())
        yield tab
        assert tab.problems == []
        assert {address.split(":")[0] for address in tab.requests} == {"file", "blob"}
        assert [address for address in tab.requests if address.startswith("file:")] == [PAGE.as_uri()]


def text(tab: Tab, element: str) -> str:
    return str(tab.evaluate(f"document.getElementById('{element}').innerText"))


def inspect(tab: Tab, file: Path, seconds: float = 60) -> str:
    """The status of a file that was read to its end."""
    tab.choose("#file", [file])
    tab.until("document.getElementById('status').dataset.state !== 'reading'", seconds)
    assert text(tab, "name") == file.name
    tab.until("open.sheet < 0 || open.listed === open.sheet")
    return text(tab, "status")


def account(tab: Tab) -> tuple[int, int, int, int]:
    """The good, damaged, tail and all bytes."""
    numbers = re.findall(r"\d[\d,]*", text(tab, "account"))
    good, damaged, tail, size = (int(number.replace(",", "")) for number in numbers)
    return good, damaged, tail, size


def choose(tab: Tab, position: int) -> None:
    tab.evaluate(f"document.querySelector('#batches tr[data-position=\"{position}\"]').click()")
    tab.until(f"open.shown === {position}")


def explanations(tab: Tab) -> list[tuple[int, str, str, str]]:
    """Position, bytes, field and meaning of each field that is shown, as the pointer finds them."""
    found = []
    for index in range(tab.evaluate("open.fields.length")):
        cells = f"#bytes i[data-field='{index}']"
        if not tab.evaluate(f"document.querySelector({cells!r}) !== null"):
            continue  # an empty field
        tab.point(cells)
        data = tab.evaluate(
            f"[...document.querySelectorAll({cells!r})].map((one) => one.innerText).join(' ')"
        )
        position = int(tab.evaluate(f"document.querySelector({cells!r}).dataset.position"))
        found.append((position, data, text(tab, "field"), text(tab, "meaning")))
    return found


def test_the_example_is_explained_byte_for_byte(tab: Tab) -> None:
    tab.evaluate("document.getElementById('example').click()")
    tab.until("document.querySelector('#batches tr')")
    choose(tab, 0)
    shown = tab.evaluate("[...document.querySelectorAll('#bytes i')].map((one) => one.innerText).join('')")
    assert bytes.fromhex(shown) == hello_world()
    rows = [
        f"{position:>8}  {data:<23}  {field:<26}  {meaning}"
        for position, data, field, meaning in explanations(tab)
    ]
    assert rows == (DUMPS / "annotated.txt").read_text().splitlines()[2:-1]
    tab.point("#bytes i[data-position='8']")
    assert "batchLength counts from byte 12" in text(tab, "rules")


def test_every_field_of_every_batch_has_a_rule(tab: Tab) -> None:
    for name in ("v2_headers", "v1_gzip", "v2_zstd", "v0_none"):
        inspect(tab, next((KAFKA / name).glob("*.log")))
        choose(tab, 0)
        assert (
            tab.evaluate("open.fields.filter((field) => !RULES[field.key]).map((field) => field.key)") == []
        )


@pytest.mark.parametrize("file", SEGMENTS, ids=lambda file: f"{file.parent.name}-{file.name}")
def test_a_segment_is_read_to_its_end(tab: Tab, file: Path) -> None:
    status = inspect(tab, file)
    size = file.stat().st_size
    good, damaged, tail, whole = (0, 0, 0, 0) if size == 0 else account(tab)
    assert (damaged, good + tail, whole) == (0, size, size)
    if file.is_relative_to(KAFKA):
        batches = [one for one in expected(file.parent, "batches.jsonl") if one["segment"] == file.name]
        assert sum(one["size"] for one in batches) == good
        assert not batches or status.startswith(f"{len(batches):,} batch"), status
        rows = tab.evaluate(
            "[...document.querySelectorAll('#batches tr')].map((row) => row.dataset.position)"
        )
        assert [int(row) for row in rows][: len(batches)] == [one["position"] for one in batches[: len(rows)]]


def damaged(data: bytes, choice: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(choice.randint(1, 4)):
        at, length = choice.randrange(len(changed)), choice.randrange(200)
        match choice.randrange(5):
            case 0:
                changed[at] ^= 1 << choice.randrange(8)
            case 1:
                changed[at : at + length] = bytes(len(changed[at : at + length]))
            case 2:
                changed[at : at + length] = choice.randbytes(len(changed[at : at + length]))
            case 3:
                del changed[at : at + length]
            case 4:
                changed[at:at] = changed[at : at + length]
    return bytes(changed)


def test_fuzzed_damage_is_listed_where_it_is(tab: Tab, tmp_path: Path) -> None:
    choice = random.Random(3)
    sources = [file.read_bytes() for file in SEGMENTS if 0 < file.stat().st_size < 30_000]
    places = 0
    for number in range(100):
        file = tmp_path / f"{number}.log"
        file.write_bytes(damaged(choice.choice(sources), choice) or b"x")
        inspect(tab, file)
        good, bad, tail, size = account(tab)
        assert good + bad + tail == size == file.stat().st_size
        listed = tab.evaluate("open.damage.map((row) => [row.position, row.size])")
        assert sum(length for _, length in listed) == bad
        places += len(listed)
        if listed:
            tab.evaluate("document.querySelector('#problems button').click()")
            tab.until(f"open.shown === {listed[0][0]}")
    assert places > 50


def test_a_flipped_bit_is_marked_and_the_page_goes_on_behind_it(tab: Tab, tmp_path: Path) -> None:
    data = bytearray(3 * hello_world())
    second = 85
    for number, offset in enumerate((0, 2, 4)):
        data[85 * number : 85 * number + 8] = offset.to_bytes(8, "big")
    data[second + 67] ^= 0x20
    file = tmp_path / "flipped"
    file.write_bytes(data)
    assert inspect(tab, file).startswith("2 batches with 4 records, 1 damaged place;")
    assert account(tab) == (170, 85, 0, 255)
    tab.evaluate("document.querySelector('#problems button').click()")
    tab.until(f"open.shown === {second}")
    assert "bit 5 of byte 67 (byte 152 of the file)" in text(tab, "repair")
    marked = tab.evaluate(
        "[...document.querySelectorAll('#bytes i.bad')].map((one) => Number(one.dataset.position))"
    )
    assert marked == [17, 18, 19, 20, 67]
    tab.point("#bytes i[data-position='17']")
    assert "wrong, computed 0x" in text(tab, "meaning")


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("empty", b"", "The file is empty."),
        (
            "text",
            b"These are words, and no batches.\n" * 50,
            "the file is no segment, or all of it is damaged",
        ),
        ("picture.png", (ROOT / "docs/explain.png").read_bytes(), "No batch can be read in these"),
        ("<img src=x onerror=alert(1)>\u202e", b"\0\1<script>", "No batch can be read in these 10 bytes"),
        ("zeros", bytes(5000), "No batch can be read in these 5,000 bytes"),
    ],
)
def test_a_file_that_is_no_segment(tab: Tab, tmp_path: Path, name: str, data: bytes, message: str) -> None:
    file = tmp_path / name
    file.write_bytes(data)
    tab.choose("#file", [file])
    tab.until("document.getElementById('status').dataset.state !== 'reading'")
    assert message in text(tab, "status")
    assert text(tab, "name").startswith(name[:4])
    if data:
        tab.until("document.querySelector('#batches tr')")
        choose(tab, 0)
        assert text(tab, "bytes")


def test_keys_move_from_byte_to_byte(tab: Tab) -> None:
    tab.point("h1")  # no byte
    tab.evaluate("document.getElementById('example').click()")
    tab.until("document.querySelector('#batches tr')")
    choose(tab, 0)
    tab.evaluate("document.getElementById('bytes').focus()")
    for key, place in (("ArrowRight", 0), ("ArrowRight", 1), ("ArrowDown", 17), ("ArrowLeft", 16)):
        tab.send("Input.dispatchKeyEvent", type="keyDown", key=key)
        assert text(tab, "place").startswith(f"Byte {place} of the batch")
    assert text(tab, "field") == "magic"


def test_a_huge_file_is_read_in_slices_while_the_page_stays_alive(tab: Tab, tmp_path: Path) -> None:
    """400 MiB, most of them a hole in the file. The batch behind the hole is found."""
    first, last = hello_world(), bytearray(hello_world())
    last[:8] = (2).to_bytes(8, "big")
    file = tmp_path / "huge.log"
    with file.open("wb") as segment:
        segment.write(first)
        segment.seek(400 << 20)
        segment.write(last)
    os.truncate(file, (400 << 20) + 85)
    tab.choose("#file", [file])
    tab.until("open.read > 0")
    assert tab.evaluate("1 + 1") == 2
    tab.until("document.getElementById('status').dataset.state !== 'reading'", 120)
    assert text(tab, "status").startswith("2 batches with 4 records, 1 damaged place;")
    tab.until("document.querySelectorAll('#batches tr').length === 3")
    choose(tab, 400 << 20)
    assert tab.evaluate("open.fields.length") > 20


def test_many_batches_are_listed_in_parts(tab: Tab, tmp_path: Path) -> None:
    builder = magicbyte.RecordsBuilder()
    file = tmp_path / "many.log"
    with file.open("wb") as segment:
        for offset in range(3000):
            builder.append(offset, 1_700_000_000_000, None, b"value")
            segment.write(builder.build())
    assert inspect(tab, file).startswith("3,000 batches with 3,000 records")
    assert text(tab, "sheet") == "part 1 of 6"
    for _ in range(5):
        number = tab.evaluate("document.getElementById('next-sheet').click(), open.sheet")
        tab.until(f"open.listed === {number}")
    assert "2,999\t" not in text(tab, "batches")
    assert tab.evaluate("document.querySelector('#batches tr:last-child').children[2].innerText") == "2999"
    assert tab.evaluate("document.getElementById('next-sheet').disabled")


def test_a_file_that_changes_while_it_is_shown(tab: Tab, tmp_path: Path) -> None:
    builder = magicbyte.RecordsBuilder()
    file = tmp_path / "changes.log"
    with file.open("wb") as segment:
        for offset in range(5000):
            builder.append(offset, 1_700_000_000_000, None, b"a value of some length" * 50)
            segment.write(builder.build())
    inspect(tab, file)
    os.truncate(file, 1000)
    os.utime(file, (1, 1))
    # The end is still in memory.
    tab.evaluate("showSheet(1)")
    tab.until("document.getElementById('status').dataset.state === 'stopped'")
    assert re.match(r".*Reading stopped at byte [\d,]+: the file cannot be read", text(tab, "status"))
    choose(tab, 0)
    assert text(tab, "error").startswith("The bytes cannot be shown")
    # The page itself is as alive as before.
    file.write_bytes(hello_world())
    assert inspect(tab, file).startswith("1 batch with 2 records")


def test_many_fields_are_shown_in_windows(tab: Tab, tmp_path: Path) -> None:
    builder = magicbyte.RecordsBuilder(compression="zstd")
    for offset in range(500):
        builder.append(offset, 1_700_000_000_000, b"key", b"x" * (3000 if offset == 0 else 3))
    file = tmp_path / "fields.log"
    file.write_bytes(builder.build())
    inspect(tab, file)
    choose(tab, 0)
    assert "Decompressed: the records, decompressed from zstd" in text(tab, "bytes")
    assert "2,744 more bytes of record 0: value" in text(tab, "bytes")
    tab.evaluate("document.getElementById('next-fields').click()")
    tab.until("open.first === 400 && document.getElementById('window').innerText.startsWith('fields 401')")
    assert tab.evaluate("open.fields[0].label").startswith("record ")
