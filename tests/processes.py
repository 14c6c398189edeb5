"""The processes of this machine, as every user sees them."""

from contextlib import suppress
from pathlib import Path


def descendants(pid: int) -> dict[int, str]:
    """The processes below one, with their command lines, whose words a zero byte ends."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                children.setdefault(parent, []).append(int(entry.name))
    found: dict[int, str] = {}
    waiting = [pid]
    while waiting:
        for child in children.get(waiting.pop(), []):
            waiting.append(child)
            with suppress(OSError):
                found[child] = Path(f"/proc/{child}/cmdline").read_text(errors="replace")
    return found
