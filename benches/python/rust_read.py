"""Reading in Rust against kafka-clients, the Rust crates, Go's clients, and the limit."""

import limits
import programs
from bench import Bench
from figures import figure
from processes import pin
from programs import MAGICBYTE, NAMES, Program

PART = "Read in Rust"
CRATES = ("krabka-protocol iterator", "krabka-protocol visitor", "kafka-protocol")
GO = ("sarama", "franz-go")
# The other crates read only magic 2, and time is limited: S3, and S2 with codecs, only against Java.
WITH_PEERS = ("s1-", "s2-none", "s4-")


def measure(bench: Bench) -> None:
    ours = Program((MAGICBYTE,), [str(programs.ours("decode"))], warm_up_seconds=0.3)
    peers = []
    with bench.guarded("the peers in Rust"):
        command = [str(programs.rust_peers()), "read", NAMES]
        peers.append(Program((MAGICBYTE, *CRATES), command, warm_up_seconds=0.2))
    with bench.guarded("the peers in Go"):
        peers.append(Program(GO, [str(programs.go_peers()), NAMES], warm_up_seconds=0.3))
    limits.built()
    pin()
    for of in bench.sets:
        chosen = [ours, programs.java("kafka-clients", "Decode")]
        if of.name.startswith(WITH_PEERS):
            chosen += peers
        with bench.guarded(f"{PART}, {of.name}"):
            working = [*bench.refusing(chosen, of), limits.READING.program(of)]
            if of.codec == "none":
                working.append(limits.MEMORY.program(of))
                working = programs.with_many_rounds(working)
            for name, compared in programs.compare(working, of, bench.turns).items():
                bench.add(figure(PART, "", of.name, name, compared))
