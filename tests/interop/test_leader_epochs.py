"""Which remote segments are within the lineage of a log's leader epochs: a broker's own verdict."""

from __future__ import annotations

import random
import subprocess

import pytest
from kafka_broker import ROOT, java
from magicbyte.internal_topics.remote_segments import RemoteSpan
from magicbyte.jobs.find.leader_epochs import epochs_between, is_within_lineage, with_records

pytestmark = pytest.mark.interop

CASES = 20_000


def history(random_: random.Random) -> dict[int, int]:
    """Leader epochs; some without records."""
    epochs, offset = {}, 0
    for epoch in sorted(random_.sample(range(7), random_.randint(1, 5))):
        epochs[epoch] = offset
        offset += random_.choice((0, 5, 10, 20))
    return epochs


def test_within_lineage() -> None:
    random_ = random.Random(7)
    cases = []
    while len(cases) < CASES:
        lineage, other = history(random_), history(random_)
        # Often the same beginning, as after an unclean election.
        if random_.random() < 0.7:
            kept = random_.randint(1, len(lineage))
            other = dict(list(lineage.items())[:kept]) | {
                epoch: offset for epoch, offset in other.items() if epoch > list(lineage)[kept - 1]
            }
            offsets = list(other.values())
            if offsets != sorted(offsets):
                continue
        start = random_.randint(0, 60)
        end = start + random_.randint(0, 30)
        epochs = epochs_between(other, start, end)
        if random_.random() < 0.3:  # the log's start has moved
            lineage = dict(list(lineage.items())[random_.randrange(len(lineage)) :])
        if epochs:
            cases.append((RemoteSpan(end, epochs), lineage))

    def text(epochs: dict[int, int]) -> str:
        return ",".join(f"{epoch}:{offset}" for epoch, offset in epochs.items())

    lines = "".join(
        f"{span.end_offset} {text(dict(span.epochs))} {text(lineage)}\n" for span, lineage in cases
    )
    command = java(str(ROOT / "tests/interop/broker/LeaderEpochs.java"))
    answers = subprocess.run(
        command, input=lines, text=True, check=True, stdout=subprocess.PIPE
    ).stdout.split()
    ours = [str(is_within_lineage(span, with_records(lineage))).lower() for span, lineage in cases]
    assert ours == answers
    assert min(ours.count("true"), ours.count("false")) > CASES // 10
