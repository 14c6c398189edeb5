"""Completion in bash, by the script that `headrace completion` prints."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from headrace.cli.main import main

PROGRAMS = Path(sys.executable).parent


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("headrace tr", "transactions"),
        ("headrace topics des", "describe"),
        ("headrace consume orders --from-", "--from-beginning --from-time"),
    ],
)
def test_bash_completes_commands_and_options(
    words: str, completed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["completion", "bash"]) == 0
    last = len(words.split()) - 1
    script = capsys.readouterr().out + (
        f"COMP_WORDS=({words}); COMP_CWORD={last}; _headrace_completion headrace\n"
        'echo "${COMPREPLY[*]}"\n'
    )
    path = f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", script],
        capture_output=True,
        text=True,
        env={**os.environ, "PATH": path},
        check=True,
    )
    assert done.stdout.split() == completed.split()


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_get_a_script_of_their_own(
    shell: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["completion", shell]) == 0
    assert f"_HEADRACE_COMPLETE={shell}_complete" in capsys.readouterr().out
