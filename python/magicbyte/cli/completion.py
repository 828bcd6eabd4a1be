"""`magicbyte completion`"""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from magicbyte.cli.terminal import print_data

__all__ = ["completion"]


@click.command(short_help="Print a completion script for a shell.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print a script that makes SHELL complete commands, options and file names of magicbyte.

    \b
    magicbyte completion bash > ~/.local/share/bash-completion/completions/magicbyte
    magicbyte completion zsh  > ~/.zfunc/_magicbyte         (with ~/.zfunc in fpath)
    magicbyte completion fish > ~/.config/fish/completions/magicbyte.fish
    """  # noqa: D301 (click takes the character \b for "leave these lines as they are")
    made = get_completion_class(shell)
    assert made is not None, f"click completes {shell}"
    print_data(made(context.find_root().command, {}, "magicbyte", COMPLETE_VARIABLE).source())


COMPLETE_VARIABLE = "_MAGICBYTE_COMPLETE"
"""The script asks for completions by running the program with this variable set."""
