"""`magicbyte.serve`: partition directories as a broker, for as long as a program needs one."""

from __future__ import annotations

from magicbyte import _core
from magicbyte.jobs.find.choice import EVERYTHING, PartitionChoice
from magicbyte.jobs.run.engines import Engine, LocalEngine
from magicbyte.jobs.run.progress import NO_PROGRESS, Progress
from magicbyte.jobs.serve import ServeOptions, Server
from magicbyte.jobs.serve import serve as serve_partitions
from magicbyte.logs import Sources, paths_of

__all__ = ["serve"]


def serve(
    sources: Sources,
    *,
    listen: str = "127.0.0.1:0",
    advertised_listener: str | None = None,
    to_magic_2: bool = False,
    as_of: int | None = None,
    read_committed_only: bool = False,
    follow: bool = False,
    committed_offsets: bool = True,
    choice: PartitionChoice = EVERYTHING,
    engine: Engine | None = None,
    progress: Progress = NO_PROGRESS,
    max_decompressed_bytes: int = _core.DEFAULT_MAX_DECOMPRESSED_BYTES,
) -> Server:
    """Lets Kafka clients read the partitions at and below `sources`: a read-only broker.

    It runs in threads until it is stopped, as at the end of `with magicbyte.serve(path) as server`; clients
    connect to `server.bootstrap_servers`. Nothing is ever written; docs/serve.md says what clients can do.

    Args:
        sources: what to serve.
        listen: host and port; port 0 is any free one.
        advertised_listener: host and port that clients are told to connect to; None for those that they have
            connected to.
        to_magic_2: convert batches of magic 0 and 1, for clients that do not read them.
        as_of: the logs as they were at this time (ms since 1970): they end before the first batch with a
            later timestamp.
        read_committed_only: nobody sees records of transactions that were aborted or had not ended.
        follow: the logs grow.
        committed_offsets: groups continue where they had committed, by the `__consumer_offsets` in `sources`.
        choice: which partitions to serve.
        engine: where `__consumer_offsets` is read; None for one thread per core.
        progress: where to report progress of that.
        max_decompressed_bytes: the limit for one batch of `__consumer_offsets`.

    """
    return serve_partitions(
        paths_of(sources),
        engine or LocalEngine(),
        ServeOptions(
            listen, advertised_listener, to_magic_2, as_of, read_committed_only, follow, committed_offsets
        ),
        choice=choice,
        max_decompressed_bytes=max_decompressed_bytes,
        progress=progress,
    )
