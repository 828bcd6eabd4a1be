"""Large segments: verifying with damage against without, forged headers, and the scan of headers
against a plain read.
"""

import subprocess
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import document
import programs
import sets
from bench import Bench
from figures import only_ratio
from processes import pin
from ratios import Comparison

DIRECTORY = sets.DATA / "segments"
TITLE = "Large segments"
PART = "Segments"
ROUNDS_IN_A_PROCESS = 3
BAD_BATCHES = 50


@dataclass(frozen=True)
class Pass:
    """What is done with which segment, and what it must find."""

    verb: str
    segment: str
    good_batches: int | None = None
    bad_ranges: int = 0

    @property
    def file(self) -> Path:
        return DIRECTORY / f"{self.segment}-0" / f"{0:020d}.log"


@dataclass(frozen=True)
class Took:
    """CPU seconds of the best round of each turn, and the peak memory of all, in bytes."""

    seconds: list[float]
    peak_memory: int


WHOLE = Pass("verify", "whole")
DAMAGED = Pass("verify", "damaged", bad_ranges=BAD_BATCHES)
FORGED = Pass("verify", "forged", good_batches=2, bad_ranges=1)
PASSES = {
    "verify, no damage": WHOLE,
    f"verify, {BAD_BATCHES} bad batches": DAMAGED,
    "verify, 256 MiB of forged headers": FORGED,
    "header scan, 127 kB batches": Pass("survey", "whole"),
    "plain read of the same file": Pass("read", "whole", good_batches=0),
    "header scan, 1.4 kB batches": Pass("survey", "small"),
    "plain read of that file": Pass("read", "small", good_batches=0),
}
# Work, data and peer, each with two of the passes above.
COMPARED = {
    ("verify", f"{BAD_BATCHES} bad batches", "no damage"): (
        f"verify, {BAD_BATCHES} bad batches",
        "verify, no damage",
    ),
    ("header scan", "127 kB batches", "a plain read"): (
        "header scan, 127 kB batches",
        "plain read of the same file",
    ),
    ("header scan", "1.4 kB batches", "a plain read"): (
        "header scan, 1.4 kB batches",
        "plain read of that file",
    ),
}


def measure(bench: Bench) -> None:
    program = programs.ours("segment")
    if not DIRECTORY.exists():
        unfinished = DIRECTORY.with_suffix(".unfinished")
        subprocess.run([program, "generate", unfinished], check=True)
        unfinished.rename(DIRECTORY)
    pin()
    took = go_over(program, bench.turns)
    for (work, on, peer), passes in COMPARED.items():
        ours, peers = ([1 / one for one in took[name].seconds] for name in passes)
        bench.add(only_ratio(PART, work, on, peer, Comparison(ours, peers)))
    bench.sections[TITLE] = section(took, bench.turns)


def go_over(program: Path, turns: int) -> dict[str, Took]:
    seconds: dict[str, list[float]] = {name: [] for name in PASSES}
    peaks = dict.fromkeys(PASSES, 0)
    batches: dict[Pass, int] = {}
    for _ in range(turns):
        for name, of in PASSES.items():
            command = [str(program), of.verb, str(of.file), str(ROUNDS_IN_A_PROCESS)]
            printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            rounds = [line.split() for line in printed.splitlines()]
            seconds[name].append(min(float(line[0]) for line in rounds))
            peaks[name] = max(peaks[name], int(rounds[-1][3]) << 10)
            batches[of] = check(of, {(int(line[1]), int(line[2])) for line in rounds})
            print(f"{name}: {seconds[name][-1]:.3f} s", flush=True)
    if batches[WHOLE] - batches[DAMAGED] != BAD_BATCHES:
        raise RuntimeError(f"{batches[WHOLE]} good batches without damage, {batches[DAMAGED]} with it")
    return {name: Took(seconds[name], peaks[name]) for name in PASSES}


def check(of: Pass, found: set[tuple[int, int]]) -> int:
    """Returns the number of good batches, which must be the same in all rounds; checks the bad ranges."""
    if len(found) == 1:
        ((batches, bad_ranges),) = found
        if bad_ranges == of.bad_ranges and of.good_batches in (None, batches):
            return batches
    raise RuntimeError(f"{of}: (batches, bad ranges) {found}")


def section(took: dict[str, Took], turns: int) -> str:
    head = document.bullets(
        document.written("make bench") + " Uncompressed S1 (127 kB a batch) and S4 (1.4 kB), 1 GiB each, "
        "from the page cache; one core, pinned.",
        f"CPU seconds, the best of {ROUNDS_IN_A_PROCESS} rounds in a process, processes in turn, {turns} "
        "turns: medians (smallest..largest).",
        "Verifying checks CRCs and reads every record. Six kinds of damage: headers of zeros, lengths too "
        "large, too small and negative, a flipped bit, noise. Each bad batch was always one bad range.",
        "Forged headers: 61 bytes each, with every field plausible except the CRC, and lengths that lead to "
        "the next header, to distant ones, and beyond the window of a scan.",
    )
    lines = [head, "", "| pass | CPU s | GB/s | peak memory, MB |", "|---|---:|---:|---:|"]
    for name, of in PASSES.items():
        seconds, rate = took[name].seconds, of.file.stat().st_size / median(took[name].seconds) / 1e9
        figures = f"{median(seconds):.3f} ({min(seconds):.3f}..{max(seconds):.3f}) | {rate:.2g}"
        lines.append(f"| {name} | {figures} | {took[name].peak_memory / 1e6:.0f} |")
    return "\n".join(lines)
