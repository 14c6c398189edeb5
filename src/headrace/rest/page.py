"""The page for people at the root: what can be asked, one line each."""

from collections.abc import Sequence
from html import escape

from headrace.http.operations import Operation

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 72rem; padding: 0 1rem }
table { border-collapse: collapse; width: 100% }
td { border-top: 1px solid #ddd; padding: .3rem .6rem; vertical-align: top }
td:first-child { font-weight: 600; width: 5rem }
code { font-size: .95em }
"""


def page(title: str, operations: Sequence[Operation]) -> str:
    """A table of all operations."""
    rows = "\n".join(
        f"<tr><td>{escape(one.method)}</td><td><code>{escape(one.path)}</code></td>"
        f"<td>{escape(one.summary)}</td></tr>"
        for one in operations
    )
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{escape(title)}</title>
<style>{_STYLE}</style>
</head>
<body>
<h1>{escape(title)}</h1>
<p>Programs find the same in <a href="/openapi.json">openapi.json</a>.</p>
<table>
{rows}
</table>
</body>
</html>
"""
