"""A pipeline's graph as text: each dataset below its input."""

from headrace.pipelines.analysing.graph import Graph, describe

STREAM, WHOLE = "─", "╌"


def text_of(graph: Graph) -> str:
    """Return a tree from the sources down; a node that was drawn before is only named."""
    lines: list[str] = []
    drawn: set[str] = set()
    order = graph.order()
    roots = [name for name in order if not graph.inputs(name)]
    for name in [*roots, *order]:  # A circle has no root.
        if name not in drawn:
            _draw(graph, name, "", "", lines, drawn)
    if any(not edge.is_stream for edge in graph.edges):
        lines += ["", f"{STREAM * 2} as rows come   {WHOLE * 2} read whole"]
    return "\n".join(lines)


def _draw(
    graph: Graph, name: str, first: str, rest: str, lines: list[str], drawn: set[str]
) -> None:
    outputs = {edge.target: edge for edge in graph.outputs(name)}
    if name in drawn:
        lines.append(f"{first}{name}" + (" (its readers: above)" if outputs else ""))
        return
    drawn.add(name)
    lines.append(f"{first}{name}  ({describe(graph, name)})")
    for at, edge in enumerate(outputs.values()):
        is_last = at == len(outputs) - 1
        line = (STREAM if edge.is_stream else WHOLE) * 2
        branch = "└" if is_last else "├"
        below = "   " if is_last else "│  "
        _draw(graph, edge.target, f"{rest}{branch}{line} ", f"{rest}{below} ", lines, drawn)
