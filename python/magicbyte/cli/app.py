"""The group of commands, and the exit code of every way to end."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module
from io import StringIO
from itertools import chain

import click
from click.shell_completion import shell_complete

from magicbyte import _core
from magicbyte.cli.completion import COMPLETE_VARIABLE
from magicbyte.cli.exits import CLEAN, FAILED, INTERRUPTED, USAGE
from magicbyte.cli.terminal import NAMES, ReaderGoneError, drop_output, is_reader_gone, prepare, print_problem
from magicbyte.errors import Error, JobError, RefusedError
from magicbyte.extras import missing_extra
from magicbyte.storage.backend import MissingPackageError

__all__ = ["app", "run"]


_SECTIONS = {
    "Read": (
        "records",
        "dump",
        "ingest",
        "serve",
        "backup",
        "cluster",
        "topics",
        "offsets",
        "schemas",
        "wire",
    ),
    "Check": ("verify", "diff", "explain", "audit"),
    "Repair": ("rescue", "recover", "merge", "restore", "find"),
    "Change": ("convert", "compact", "redact"),
    "Learn": ("stats", "advise", "completion"),
}


class _Sections(click.Group):
    """A group whose help lists the commands by section. Each is in the module of its name, which is imported
    when it is asked for: a command should not wait for all others.
    """

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return [*chain.from_iterable(_SECTIONS.values())]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        command: click.Command = getattr(import_module(f"magicbyte.cli.{cmd_name}"), cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, names in _SECTIONS.items():
            with formatter.section(title):
                commands = (self.get_command(ctx, name) for name in names)
                formatter.write_dl(
                    [(str(one.name), one.get_short_help_str(90)) for one in commands if one is not None]
                )


@click.group(
    cls=_Sections, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110}
)
@click.version_option(_core.__version__, prog_name="magicbyte")
def app() -> None:
    """Read Kafka's segment files: every record, every byte accounted for, without a broker.

    SRC is a partition directory (orders-0/ with its 00000000000000000000.log), any directory that has such
    directories somewhere below it (a broker's log.dirs, a backup, a mounted bucket), or a single segment.
    There may be several; --topic, --exclude and --partition choose among the partitions in them.

    \b
    magicbyte verify  /backup/kafka-logs                  is everything readable?
    magicbyte records /backup/kafka-logs/orders-0 | jq    the records as JSON lines
    magicbyte ingest  /backup/kafka-logs tables/          Parquet tables, with proof that nothing is lost
    magicbyte serve   /backup/kafka-logs                  let every Kafka client read it
    magicbyte recover /backup/kafka-logs repaired/        repair damaged partitions for a broker
    magicbyte convert /backup/kafka-0.10 new-logs/        move old segments to Kafka 4

    Commands that run a job do so in threads of this process; --engine spark, or --master, runs it on Spark
    instead, with the same result.

    Exit codes: 0 clean; 1 done, but problems were found; 2 usage; 3 could not finish, or the sum of
    bytes and records does not add up; 130 interrupted.
    """  # noqa: D301 (click takes the character \b for "leave these lines as they are")


def run(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit code and never raises."""
    prepare()
    NAMES.clear()
    if sys.stdout is None:
        return _failed("standard output is closed: use /dev/null if nobody reads it")
    code = _run(list(sys.argv[1:] if arguments is None else arguments))
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        drop_output()
    except OSError as error:
        drop_output()
        return _failed(f"standard output: {error}")
    return code


def _run(arguments: list[str]) -> int:
    try:
        if instruction := os.environ.get(COMPLETE_VARIABLE):
            return shell_complete(app, {}, "magicbyte", COMPLETE_VARIABLE, instruction)
        # Not `app.main`: its exit codes differ, such as 1 for a closed pipe.
        with app.make_context("magicbyte", arguments) as context:
            return int(app.invoke(context) or CLEAN)
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.ClickException as error:
        error.show(shown := StringIO())
        for line in shown.getvalue().expandtabs().splitlines():
            print_problem(line)
        return USAGE
    except (click.Abort, KeyboardInterrupt):
        return _interrupted()
    except ReaderGoneError:
        return CLEAN
    except BrokenPipeError as error:
        # That of standard output, as of a help text, or of a connection.
        return CLEAN if is_reader_gone() else _failed(str(error))
    except (RefusedError, MissingPackageError) as error:
        print_problem(f"magicbyte: {error}")
        return USAGE
    except (JobError, Error, OSError) as error:
        return _interrupted() if _is_of_an_interrupt(error) else _failed(str(error))
    except MemoryError as error:
        return _failed(f"the memory is exhausted: {error}" if str(error) else "the memory is exhausted")
    except ModuleNotFoundError as error:
        if message := missing_extra(error):
            print_problem(message)
            return USAGE
        return _bug()
    except BaseException as error:
        if isinstance(error, RuntimeError) and str(error) == _NO_THREAD:
            return _failed(f"{error}: the system allows this user no more threads")
        # A panic of the compiled core is not an Exception, but must not become exit code 1 either.
        return _interrupted() if _is_of_an_interrupt(error) else _bug()


_NO_THREAD = "can't start new thread"


def _is_of_an_interrupt(error: BaseException) -> bool:
    """True if an error occurred while leaving after an interrupt, as when Spark's connection is closed."""
    seen: BaseException | None = error
    while seen is not None and not isinstance(seen, KeyboardInterrupt):
        seen = seen.__context__
    return seen is not None


def _interrupted() -> int:
    print_problem("magicbyte: interrupted")
    return INTERRUPTED


def _bug() -> int:
    for line in traceback.format_exc().splitlines():
        print_problem(line)
    return _failed("this is a bug; the traceback is above")


def _failed(message: str) -> int:
    print_problem(f"magicbyte: {message}")
    return FAILED
