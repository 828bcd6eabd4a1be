"""Captures: how fast frames are found, and a whole capture decoded, against tshark."""

import resource
import shutil
import struct
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import sets
from bench import Bench
from figures import only_ratio
from magicbyte import read_batches
from magicbyte.message import encode_request, encode_response
from magicbyte.wire import Exchanges
from processes import pin
from programs import Absent
from ratios import Comparison, in_turn
from sets import Set

PART = "Captures"
GIGABYTE = 1e9
SET = "s1-none"
# Fetch 11 is the newest version that tshark reads.
FETCH = 11
FETCHED = 1 << 20
SEGMENT = 1448
PORT = 9092
REPEATED = 4
# tshark takes long.
DECODED_SETS = 16


def measure(bench: Bench) -> None:
    pin()
    for of in bench.chosen(SET):
        with bench.guarded(f"{PART}, frames"):
            found = fetched(of.path.read_bytes()) * REPEATED
            capture = write(of, found)
            if scan(capture) < sum(map(len, found)):
                raise RuntimeError("a response is missing")
            size = capture.stat().st_size
            rates = [size / GIGABYTE * speed(partial(scan, capture)) for _ in range(bench.turns)]
            bench.add(only_ratio(PART, "frames", of.name, "1 GB/s", Comparison(rates, [1.0] * len(rates))))
        with bench.guarded(f"{PART}, messages"):
            if shutil.which("tshark") is None:
                raise Absent("tshark is not installed")
            capture = write(of, fetched(of.path.read_bytes())[:DECODED_SETS])
            ways = {"ours": partial(decode, capture), "tshark": partial(by_tshark, capture)}
            records = {name: way() for name, way in ways.items()}
            if records["ours"] != records["tshark"]:
                raise RuntimeError(f"records: {records}")
            speeds = in_turn({name: partial(speed, way) for name, way in ways.items()}, bench.turns)
            compared = Comparison(speeds["ours"], speeds["tshark"])
            bench.add(only_ratio(PART, "records", of.name, "tshark", compared))


def speed(way: Callable[[], int]) -> float:
    """How often it can be done in a second of CPU time, also of the processes that it starts."""
    start = cpu_seconds()
    way()
    return 1 / (cpu_seconds() - start)


def cpu_seconds() -> float:
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in used)


def scan(capture: Path) -> int:
    """The bytes of the responses, none of which is decoded."""
    return sum(len(one.response_frame or b"") for one in Exchanges([capture], ports=[PORT]))


def decode(capture: Path) -> int:
    """The records in the messages."""
    count = 0
    for exchange in Exchanges([capture], ports=[PORT]):
        if exchange.request is None or exchange.response is None:
            raise RuntimeError("a message is missing")
        for records in exchange.record_sets():
            for batch in read_batches(records.data):
                for record in batch:
                    count += record.value is not None
    return count


def by_tshark(capture: Path) -> int:
    command = ["tshark", "-r", str(capture), "-d", f"tcp.port=={PORT},kafka", "-T", "fields"]
    done = subprocess.run([*command, "-e", "kafka.message_value"], check=True, capture_output=True)
    return sum(line.count(b",") + 1 for line in done.stdout.splitlines() if line)


def fetched(data: bytes) -> list[bytes]:
    """Whole batches of about 1 MiB."""
    found, start = [], 0
    for batch in read_batches(data):
        end = batch.position + batch.size_in_bytes
        if end - start >= FETCHED:
            found.append(data[start:end])
            start = end
    return found


def write(of: Set, record_sets: list[bytes]) -> Path:
    """A pcap file of a client that fetches these."""
    path = sets.DATA / f"{of.name}.pcap"
    with path.open("wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 1 << 18, 101))
        for packet in packets(record_sets):
            file.write(struct.pack("<IIII", 1_700_000_000, 0, len(packet), len(packet)))
            file.write(packet)
    return path


def packets(record_sets: list[bytes]) -> Iterator[bytes]:
    """TCP over IPv4, without a link layer: a connection with a request and a response for each set."""
    sequences = [1, 1]
    for number, records in enumerate(record_sets):
        head = {"correlationId": number}
        asked = {"partition": 0, "fetchOffset": 0, "partitionMaxBytes": FETCHED}
        request = {"topics": [{"topic": "orders", "partitions": [asked]}]}
        answer = {"partitionIndex": 0, "highWatermark": 0, "records": records}
        response = {"responses": [{"topic": "orders", "partitions": [answer]}]}
        frames = (
            encode_request("Fetch", FETCH, request, header={**head, "clientId": "bench"}),
            encode_response("Fetch", FETCH, response, header=head),
        )
        for side, frame in enumerate(frames):
            stream = struct.pack(">i", len(frame)) + frame
            for at in range(0, len(stream), SEGMENT):
                payload = stream[at : at + SEGMENT]
                yield packet(side, sequences, payload)
                sequences[side] = (sequences[side] + len(payload)) % (1 << 32)


def packet(side: int, sequences: list[int], payload: bytes) -> bytes:
    ports = (50_000, PORT) if side == 0 else (PORT, 50_000)
    tcp = struct.pack(">HHIIBBHHH", *ports, sequences[side], sequences[1 - side], 0x50, 16, 65535, 0, 0)
    ends = (b"\x7f\x00\x00\x01", b"\x7f\x00\x00\x02")
    size = 40 + len(payload)
    ip = struct.pack(">BBHHHBBH", 0x45, 0, size, 0, 0, 64, 6, 0) + ends[side] + ends[1 - side]
    return ip + tcp + payload
