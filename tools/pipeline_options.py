"""Writes `docs/reference/pipeline-options.md`: the options of each declaration, in SQL and Python.

The tables come from the definitions that the SQL parser and the decorators read.
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from headrace.pipelines.declaring import options

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "reference" / "pipeline-options.md"
KINDS = (
    ("Streaming tables", "`CREATE STREAMING TABLE`, `@table`", options.FedTableOptions),
    ("Streaming tables without a flow", "`create_streaming_table`", options.RuledTableOptions),
    ("Materialized views", "`CREATE MATERIALIZED VIEW`, `@materialized_view`", options.ViewOptions),
    ("Merged views", "`CREATE MERGED VIEW`, `@merged_view`", options.MergedViewOptions),
    ("Flows", "`CREATE FLOW`, `@append_flow`", options.FlowOptions),
    ("Flows of changes", "`AUTO CDC INTO`, `create_auto_cdc_flow`", options.ChangesOptions),
    ("Sinks", "`CREATE SINK`, `create_sink`", options.SinkOptions),
)
HEAD = """# Options of pipeline declarations

This page lists the options of tables, views, flows and sinks in SQL and Python.

```sql
CREATE STREAMING TABLE trusted.orders
KEYS (id)
COMMENT 'The newest row of each order'
AS SELECT * FROM STREAM(raw.orders);
```

An SQL statement has them as clauses between the name and `AS`, in any order; a Python declaration
has them as keywords. `tools/pipeline_options.py` writes this page.
"""


def render() -> str:
    """Return the page."""
    return HEAD + "".join(line + "\n" for kind in KINDS for line in section(*kind))


def section(title: str, words: str, kind: type) -> Iterator[str]:
    yield from ("", f"## {title}", "", f"{words}", "")
    yield from ("| SQL | Python | meaning |", "| --- | --- | --- |")
    for keyword, option in options.options_of(kind).items():
        clauses = ", ".join(f"`{clause}`" for clause in option.clauses)
        yield f"| {clauses} | `{keyword}` | {option.doc} |"


def main() -> int:
    """Write the page, or with --check report whether it is current."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail if the page is not current")
    if parser.parse_args().check:
        return 0 if PAGE.read_text() == render() else 1
    PAGE.write_text(render())
    return 0


if __name__ == "__main__":
    sys.exit(main())
