"""Writes `src/headrace/broker/api/table.py`: the APIs of all handlers, collected from `@api`."""

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HANDLERS = ROOT / "src" / "headrace" / "broker" / "api"
TABLE = HANDLERS / "table.py"
HEAD = '''"""Every API with its family and versions. Written by `make docs` from `@api`.

A row is: the family, the API, the lowest and the highest version served, and the lowest version
advertised.
"""

ROWS = (
'''


def render() -> str:
    """Return the text of the table as the handlers have it."""
    rows = sorted(registrations())
    return HEAD + "".join(f"    {row},\n".replace("'", '"') for _, row in rows) + ")\n"


def registrations() -> Iterator[tuple[int, tuple[str, str, int, int, int]]]:
    """Yield the row of each handler, with the number of its API."""
    for path in sorted(HANDLERS.glob("*/*.py")):
        family, name = path.parent.name, path.stem
        module = import_module(f"headrace.broker.api.{family}.{name}")
        found = getattr(getattr(module, name, None), "registration", None)
        if found is not None:
            assert found.key.name.lower() == name, f"{path} handles {found.key.name}"
            first, last = found.versions[0], found.versions[-1]
            yield int(found.key), (family, found.key.name, first, last, found.advertised_from)


if __name__ == "__main__":
    TABLE.write_text(render())
    print(f"wrote {TABLE.relative_to(ROOT)}")
