"""`headrace completion`: print the script that completes commands and options in a shell."""

import click
from click.shell_completion import get_completion_class

from headrace.cli.output import print_line


@click.command(
    "completion", short_help="Print the script that completes commands in bash, zsh or fish."
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the script that completes commands and options of headrace in SHELL.

    \b
    headrace completion bash >> ~/.bashrc
    headrace completion zsh >> ~/.zshrc
    headrace completion fish > ~/.config/fish/completions/headrace.fish
    """
    from headrace.cli.group import headrace

    kind = get_completion_class(shell)
    assert kind is not None, "click supports these shells"
    print_line(kind(headrace, {}, "headrace", "_HEADRACE_COMPLETE").source())
