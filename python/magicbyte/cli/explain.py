"""`magicbyte explain`"""

from __future__ import annotations

from pathlib import Path

import click

import magicbyte
from magicbyte.cli import options, partition_choice
from magicbyte.cli.engines import EngineChoice
from magicbyte.cli.exits import exit_code
from magicbyte.cli.flags import flags
from magicbyte.cli.overview import View
from magicbyte.jobs.find.choice import PartitionChoice
from magicbyte.options.read import ExplainOptions
from magicbyte.options.shared import DeadLetters

__all__ = ["explain"]


@click.command(short_help="Print the history of partitions: producers, transactions, gaps.")
@partition_choice.sources
@partition_choice.choice()
@options.html("the histories, with charts,")
@flags(ExplainOptions, "given")
@flags(DeadLetters, "letters")
@click.option("--verify", is_flag=True, help="Also check all CRCs and records, as `magicbyte verify` does.")
@flags(EngineChoice, "engine")
@options.as_json
def explain(
    sources: tuple[str, ...],
    choice: PartitionChoice,
    page: Path | None,
    given: ExplainOptions,
    letters: DeadLetters,
    verify: bool,
    engine: EngineChoice,
    as_json: bool,
) -> int:
    """Print the history of each partition at and below SRC, reconstructed from its batch headers.

    Producers with their epochs, and sequences that are missing, repeated or go back, by the rules of a
    broker's ProducerStateManager; transactions: committed, aborted, open and hanging; offsets that
    compaction removed, timestamps that go back, leader epochs, codecs, batch sizes, control records, and
    bytes in no batch. Only batches of magic 0 and 1 are decompressed, since their headers do not count their
    records. CRCs are not checked without --verify.

    The output for several partitions begins with a list of notable facts. With more than 20 partitions, only
    the notable partitions follow.

    Everything is counted. --json lists up to --max-listed producers, transactions, gaps, anomalies and so on
    of each partition: open transactions first, then the largest. Gaps and steps back in time are limited to
    1000 per segment.

    --dead-letters decodes the records of the partitions. Those with headers __dlq.errors.* (share groups) or
    __connect.errors.* (sink connectors) are listed with the topic, partition and offset of the record that
    they are of, whether it is found, and whether key and value are equal. --topic and the like choose the
    queues.

    \b
    magicbyte explain /backup/kafka-logs/orders-0
    magicbyte explain --dead-letters --topic orders.dlq /backup/kafka-logs
    magicbyte explain /backup/kafka-logs/orders-0 --html orders.html
    magicbyte explain --json /backup/kafka-logs | jq '.partitions[].transactions[] | select(.hanging)'
    """  # noqa: D301 (click takes the character \b for "leave these lines as they are")
    from magicbyte.cli import accounts, reports
    from magicbyte.cli.dead_letters import print_dead_letters
    from magicbyte.cli.history_page import history_page
    from magicbyte.cli.history_text import print_histories
    from magicbyte.cli.html_page import check_page, write_page
    from magicbyte.cli.terminal import print_line
    from magicbyte.jobs.explain import irregularities
    from magicbyte.jobs.run.progress import terminal_progress

    if page is not None:
        check_page(page, "explain", sources)
    with engine.open("magicbyte explain") as runner:
        progress = terminal_progress()
        histories = magicbyte.explain(sources, choice=choice, engine=runner, progress=progress, **vars(given))
        checked, dead = None, None
        if letters.dead_letters:
            dead = magicbyte.dead_letters(sources, choice=choice, engine=runner, progress=progress)
        if verify:
            checked = magicbyte.verify(sources, choice=choice, engine=runner, progress=progress)
    if page is not None:
        write_page(page, "explain", history_page(histories, verified=verify))
    if as_json:
        reports.print_json({"partitions": histories, "verification": checked, "dead_letters": dead})
    else:
        print_histories(histories)
        if dead is not None:
            print_dead_letters(dead)
        if checked is None:
            print_line("Read from batch headers: CRCs and records were not checked (--verify checks them).")
        else:
            accounts.print_verified(checked, sources, View())
    code = exit_code(sum(map(irregularities, histories)) or (dead is not None and dead["problems"]))
    return code if checked is None else max(code, accounts.verify_code(checked))
