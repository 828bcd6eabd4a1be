"""Reading in Python against aiokafka: loops in turn in one process, on the same bytes."""

from functools import partial

import limits
import loops
from bench import Bench
from figures import figure
from processes import pin
from ratios import Comparison, in_turn

PART = "Read in Python"


def measure(bench: Bench) -> None:
    import aiokafka_loops

    limits.built()
    pin()
    peer = aiokafka_loops.READS
    # aiokafka reads magic 1 with another class, and there each message is a batch of its own.
    for of in (of for of in bench.sets if of.magic == 2):
        with bench.guarded(f"{PART}, {of.name}"):
            data = of.path.read_bytes()
            all_loops = [peer, *loops.OURS]
            for loop in all_loops:
                loops.check(loop, of, data)
            ways = {one.name: partial(loops.rate, one, of, data) for one in all_loops}
            least = {loop.name: limits.limit_of(PART, loop.name) for loop in loops.OURS}
            ways |= {limit.name: limit.way(of) for limit in least.values()}
            rates = in_turn(ways, bench.turns)
            for loop in loops.OURS:
                compared = Comparison(rates[loop.name], rates[peer.name])
                bench.add(figure(PART, loop.name, of.name, peer.name, compared))
                compared = Comparison(rates[loop.name], rates[least[loop.name].name])
                bench.add(figure(PART, loop.name, of.name, limits.LIMIT, compared))
