"""Writes the names of librdkafka's properties, as the installed librdkafka reports them.

The client suggests one of the names for a misspelt one. Each line of the file has a name and its
reader: C is a consumer, P a producer, * both.
"""

import ctypes
import importlib.util
import sys
import tempfile
from pathlib import Path

TARGET = Path(__file__).resolve().parent.parent / "src/headrace/client/librdkafka_properties.txt"
NOT_TEXT = "see dedicated API"
"""Functions and pointers that only a C program can set."""


def main() -> int:
    readers: dict[str, str] = {}
    for name, reader in properties(described()):
        readers[name] = reader if readers.get(name, reader) == reader else "*"
    TARGET.write_text("".join(f"{name} {reader}\n" for name, reader in sorted(readers.items())))
    return 0


def described() -> str:
    """The table of all properties, as librdkafka prints it."""
    spec = importlib.util.find_spec("confluent_kafka")
    assert spec is not None
    assert spec.origin is not None
    site = Path(spec.origin).parent.parent
    library = ctypes.CDLL(str(next(site.glob("confluent_kafka.libs/librdkafka*"))))
    c = ctypes.CDLL(None)
    c.fopen.restype = ctypes.c_void_p
    with tempfile.NamedTemporaryFile() as table:
        stream = ctypes.c_void_p(c.fopen(table.name.encode(), b"w"))
        library.rd_kafka_conf_properties_show(stream)
        c.fclose(stream)
        return Path(table.name).read_text()


def properties(table: str) -> list[tuple[str, str]]:
    rows = [[cell.strip() for cell in line.split("|")] for line in table.splitlines()]
    return [
        (row[0], row[1])
        for row in rows
        if len(row) > 5 and row[1] in ("C", "P", "*") and NOT_TEXT not in row[-1]
    ]


if __name__ == "__main__":
    sys.exit(main())
