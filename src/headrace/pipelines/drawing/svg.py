"""A pipeline's graph as an SVG picture."""

from collections.abc import Iterator, Sequence
from html import escape

from headrace.pipelines.analysing.graph import Edge, Graph, describe
from headrace.pipelines.drawing.layout import Band, Layout, Slot, layout_of
from headrace.pipelines.model import SOURCES

MARGIN, WIDTH_MIN, ARROW = 24, 420, 2
NODE_WIDTH_MIN, NODE_HEIGHT = 150, 46
LANE_HEIGHT = 4
COLUMN_GAP, ROW_GAP = 70, 18
TITLE_HEIGHT, ZONE_HEIGHT, LEGEND_HEIGHT = 40, 30, 34
LETTER_WIDTH = 6.7
"""The width at 12 px, with a margin."""

COLORS = {
    "source": ("#e8f0fe", "#3b6fd4"),
    "streaming table": ("#e6f4ea", "#2e8b57"),
    "materialized view": ("#fef3e0", "#c77700"),
    "merged view": ("#f3e8fd", "#8250c4"),
    "temporary view": ("#f5f5f5", "#8a8a8a"),
    "sink": ("#fde8e8", "#c43d3d"),
    "quarantine": ("#fff0f0", "#a85555"),
}
"""Fill and line of each kind."""

_STYLE = """
text { font-family: -apple-system, "Segoe UI", "Helvetica Neue", "DejaVu Sans", sans-serif; }
.title { font-size: 17px; font-weight: 600; fill: #202124; }
.zone { font-size: 12px; font-weight: 600; fill: #5f6368; letter-spacing: .04em; }
.name { font-size: 12px; font-weight: 600; fill: #202124; }
.what { font-size: 10px; fill: #5f6368; }
.edge { fill: none; stroke: #7d8590; stroke-width: 1.4; }
.whole { stroke-dasharray: 5 4; }
""".strip()


def svg_of(graph: Graph) -> str:
    """Return the picture; all texts of a pipeline's files are escaped."""
    layout = layout_of(graph)
    picture = _Picture(graph, layout)
    body = [picture.background(), picture.title()]
    body += [picture.band(band) for band in layout.bands]
    body += [picture.edge(edge) for edge in picture.drawn_edges()]
    nodes = [slot for column in layout.columns for slot in column if not slot.is_lane]
    body += [picture.node(slot) for slot in nodes]
    body.append(picture.legend())
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{picture.width}"'
        f' height="{picture.height}" viewBox="0 0 {picture.width} {picture.height}" role="img">\n'
        f"<style>{_STYLE}</style>\n"
        '<defs><marker id="end" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7"'
        ' markerHeight="7" orient="auto-start-reverse"><path d="M0 0 L8 4 L0 8 z"'
        ' fill="#7d8590"/></marker></defs>\n' + "\n".join(body) + "\n</svg>\n"
    )


class _Picture:
    """Turns columns and rows into pixels."""

    def __init__(self, graph: Graph, layout: Layout) -> None:
        self.graph = graph
        self.layout = layout
        self.texts = {name: (_short(name), describe(graph, name)) for name in layout.column_of}
        self.widths = [
            max([NODE_WIDTH_MIN, *(_width(*self.texts[s.name]) for s in slots if not s.is_lane)])
            for slots in layout.columns
        ]
        heights = [sum(map(_height, slots)) for slots in layout.columns]
        self.rows_height = max(heights, default=0) + ROW_GAP
        across = sum(self.widths) + COLUMN_GAP * max(len(self.widths) - 1, 0)
        self.width = max(2 * MARGIN + across, WIDTH_MIN)
        self.top = TITLE_HEIGHT + ZONE_HEIGHT + MARGIN
        self.height = self.top + self.rows_height + LEGEND_HEIGHT
        self.middles = {
            slot: middle
            for slots, height in zip(layout.columns, heights, strict=True)
            for slot, middle in self._middles(slots, height)
        }

    def drawn_edges(self) -> list[Edge]:
        """Return one edge per pair of nodes; a stream takes precedence over a read of the whole."""
        pairs: dict[tuple[str, str], Edge] = {}
        for edge in sorted(self.graph.edges, key=lambda edge: not edge.is_stream):
            if edge.source in self.layout.column_of:
                pairs.setdefault((edge.source, edge.target), edge)
        return list(pairs.values())

    def background(self) -> str:
        return f'<rect width="{self.width}" height="{self.height}" fill="#ffffff"/>'

    def title(self) -> str:
        settings = self.graph.pipeline.settings
        text = f"{settings.name} ({settings.architecture.value})"
        return f'<text class="title" x="{MARGIN}" y="{MARGIN + 8}">{escape(text)}</text>'

    def band(self, band: Band) -> str:
        left = self.left(band.first) - COLUMN_GAP // 4
        right = self.left(band.last) + self.widths[band.last] + COLUMN_GAP // 4
        top = TITLE_HEIGHT + MARGIN // 2
        height = ZONE_HEIGHT + self.rows_height
        return (
            f'<rect x="{left}" y="{top}" width="{right - left}" height="{height}" rx="8"'
            ' fill="#fafbfc" stroke="#e3e6ea"/>'
            f'<text class="zone" x="{(left + right) / 2:g}" y="{top + 20}" text-anchor="middle">'
            f"{escape(band.zone)}</text>"
        )

    def node(self, slot: Slot) -> str:
        left, width = self.left(slot.column), self.widths[slot.column]
        top = self.middles[slot] - NODE_HEIGHT / 2
        fill, line = COLORS[self.graph.kind(slot.name)]
        name, what = self.texts[slot.name]
        middle = left + width / 2
        return (
            f"<g><title>{escape(slot.name)}</title>"
            f'<rect x="{left}" y="{top:g}" width="{width}" height="{NODE_HEIGHT}" rx="6"'
            f' fill="{fill}" stroke="{line}"/>'
            f'<text class="name" x="{middle:g}" y="{top + 20:g}" text-anchor="middle">'
            f"{escape(name)}</text>"
            f'<text class="what" x="{middle:g}" y="{top + 35:g}" text-anchor="middle">'
            f"{escape(what)}</text></g>"
        )

    def edge(self, edge: Edge) -> str:
        """Return a curve from node to node, straight along each lane."""
        first, *rest = self.layout.route(edge.source, edge.target)
        x, y = self.right(first.column), self.middles[first]
        path = f"M{x} {y:g}"
        for slot in rest:
            left = self.left(slot.column) - (0 if slot.is_lane else ARROW)
            next_y = self.middles[slot]
            bend = max(abs(left - x) / 2, COLUMN_GAP / 2)
            path += f" C{x + bend:g} {y:g} {left - bend:g} {next_y:g} {left} {next_y:g}"
            x, y = self.right(slot.column), next_y
            path += f" H{x}" if slot.is_lane else ""
        kind = "edge" if edge.is_stream else "edge whole"
        return f'<path class="{kind}" marker-end="url(#end)" d="{path}"/>'

    def legend(self) -> str:
        y = self.height - LEGEND_HEIGHT / 2 + 4
        return (
            f'<path class="edge" d="M{MARGIN} {y - 4:g} h28"/>'
            f'<text class="what" x="{MARGIN + 36}" y="{y:g}">as rows come</text>'
            f'<path class="edge whole" d="M{MARGIN + 130} {y - 4:g} h28"/>'
            f'<text class="what" x="{MARGIN + 166}" y="{y:g}">read whole</text>'
        )

    def left(self, column: int) -> int:
        return MARGIN + sum(self.widths[:column]) + COLUMN_GAP * column

    def right(self, column: int) -> int:
        return self.left(column) + self.widths[column]

    def _middles(self, slots: Sequence[Slot], height: int) -> Iterator[tuple[Slot, float]]:
        """Yield the middles of a column's slots; a short column is centred."""
        y = self.top + (self.rows_height - height) / 2
        for slot in slots:
            yield slot, y + _height(slot) / 2
            y += _height(slot)


def _short(name: str) -> str:
    """Return the name without `sources.`, which the band shows."""
    return name.removeprefix(f"{SOURCES}.")


def _height(slot: Slot) -> int:
    return ROW_GAP + (LANE_HEIGHT if slot.is_lane else NODE_HEIGHT)


def _width(name: str, what: str) -> int:
    return int(max(len(name) * LETTER_WIDTH * 1.15, len(what) * LETTER_WIDTH * 0.85)) + 24
