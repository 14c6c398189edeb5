"""The layout of a pipeline's picture: zones are columns, readers to the right.

A dataset that reads another of its zone is one column further. An edge across columns gets a free
lane in each, so that it does not run behind a node. Nodes and lanes of each column are sorted by
the mean place of their inputs, there and back a few times: the usual way to few crossings.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from headrace.pipelines.analysing.graph import Graph
from headrace.pipelines.model import QUARANTINE, SOURCES, Sink

SINKS = "sinks"
_SWEEPS = 6


@dataclass(frozen=True, slots=True)
class Slot:
    """A node, or the lane of a node's edges through another column."""

    name: str
    column: int
    is_lane: bool = False


@dataclass(frozen=True, slots=True)
class Band:
    """A zone's columns, from the first to the last."""

    zone: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Layout:
    columns: tuple[tuple[Slot, ...], ...]
    """From left to right, each from the top down."""
    bands: tuple[Band, ...]
    column_of: Mapping[str, int]

    def route(self, source: str, target: str) -> list[Slot]:
        """Return the slots of an edge; an edge that leads back has no lanes."""
        first, last = self.column_of[source], self.column_of[target]
        lanes = [Slot(source, column, is_lane=True) for column in range(first + 1, last)]
        return [Slot(source, first), *lanes, Slot(target, last)]


def layout_of(graph: Graph) -> Layout:
    zones = _zones_of(graph)
    steps = _steps_inside(graph, zones)
    bands: list[Band] = []
    for zone in _order_of_zones(graph, zones):
        width = max(steps[name] for name, of in zones.items() if of == zone) + 1
        first = bands[-1].last + 1 if bands else 0
        bands.append(Band(zone, first, first + width - 1))
    first_of = {band.zone: band.first for band in bands}
    column_of = {name: first_of[zone] + steps[name] for name, zone in zones.items()}
    columns: list[list[Slot]] = [[] for _ in range(bands[-1].last + 1 if bands else 0)]
    for name in graph.order():
        columns[column_of[name]].append(Slot(name, column_of[name]))
    layout = Layout((), tuple(bands), column_of)
    pairs = [
        pair
        for edge in graph.edges
        if edge.source in column_of
        for route in [layout.route(edge.source, edge.target)]
        for pair in pairwise(route)
    ]
    for lane in dict.fromkeys(slot for pair in pairs for slot in pair if slot.is_lane):
        columns[lane.column].append(lane)
    _uncross(columns, pairs)
    return Layout(tuple(map(tuple, columns)), tuple(bands), column_of)


def _zones_of(graph: Graph) -> dict[str, str]:
    """Return each node's zone; a view without one is in the last zone that it reads."""
    zones: dict[str, str] = {}
    ranks = {zone: rank for rank, zone in enumerate((SOURCES, *graph.pipeline.settings.zones))}
    for name in graph.order():
        zone, separator, _ = name.partition(".")
        if isinstance(graph.pipeline.datasets.get(name), Sink):
            zones[name] = SINKS
        elif separator:
            zones[name] = zone
        else:
            inputs = [zones[edge.source] for edge in graph.inputs(name) if edge.source in zones]
            ranked = [zone for zone in inputs if zone in ranks and zone != SOURCES]
            first = graph.pipeline.settings.zones[0]
            zones[name] = max(ranked, key=lambda zone: ranks[zone], default=first)
    return zones


def _order_of_zones(graph: Graph, zones: Mapping[str, str]) -> list[str]:
    present = set(zones.values())
    order = (SOURCES, *graph.pipeline.settings.zones, QUARANTINE, SINKS)
    return [zone for zone in order if zone in present]


def _steps_inside(graph: Graph, zones: Mapping[str, str]) -> dict[str, int]:
    """Return the depth of each dataset within its own zone."""
    steps: dict[str, int] = {}
    for name in graph.order():
        before = [
            steps[edge.source]
            for edge in graph.inputs(name)
            if zones.get(edge.source) == zones[name] and edge.source in steps
        ]
        steps[name] = max(before, default=-1) + 1
    return steps


def _uncross(columns: Sequence[list[Slot]], pairs: Sequence[tuple[Slot, Slot]]) -> None:
    """Sort each column by the mean row of its neighbours, left to right and back."""
    inputs: dict[Slot, list[Slot]] = {}
    outputs: dict[Slot, list[Slot]] = {}
    for source, target in pairs:
        inputs.setdefault(target, []).append(source)
        outputs.setdefault(source, []).append(target)
    for sweep in range(_SWEEPS):
        is_forward = sweep % 2 == 0
        neighbours = inputs if is_forward else outputs
        for slots in columns if is_forward else reversed(columns):
            row_of = {slot: row for column in columns for row, slot in enumerate(column)}
            mean = {slot: _mean(slot, neighbours.get(slot, ()), row_of) for slot in slots}
            slots.sort(key=mean.__getitem__)


def _mean(slot: Slot, neighbours: Sequence[Slot], row_of: Mapping[Slot, int]) -> float:
    rows = [row_of[one] for one in neighbours]
    return sum(rows) / len(rows) if rows else float(row_of[slot])
