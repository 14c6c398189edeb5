"""What a pipeline's files have declared so far, while they are being read.

Declarations come in any order: a flow before its table, a rule above or below the decorator that
makes the table. They are kept as they come, and joined when all files have been read.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FrameType
from typing import Any

from headrace.pipelines.model import (
    ZONES,
    Changes,
    Dataset,
    Expectation,
    Flow,
    MaterializedView,
    Place,
    Sink,
    StreamingTable,
    TemporaryView,
    kind_of,
)
from headrace.pipelines.names import complaint, flow_complaint
from headrace.pipelines.problems import PipelineError, Problem, nearest

QueryFunction = Callable[[], Any]
Checked = StreamingTable | MaterializedView
"""What expectations can be about."""
OWN_RULES = frozenset(("partition", "unreadable"))
"""The rules of quarantine that nobody declares; `lake.quarantine` has them too, and takes long."""


@dataclass(frozen=True, slots=True)
class DeclaredDataset:
    """A dataset, and the function that declared it, where one did."""

    dataset: Dataset
    function: QueryFunction | None = None
    module: str = ""


@dataclass(frozen=True, slots=True)
class DeclaredRule:
    """An expectation that decorates a function, which may become a table before or after."""

    function: QueryFunction
    expectation: Expectation
    place: Place


@dataclass(frozen=True, slots=True)
class Declared:
    """All datasets and flows of a folder, joined."""

    datasets: Mapping[str, Dataset]
    flows: tuple[Flow, ...]


@dataclass(slots=True)
class Registry:
    """Collects declarations and what is wrong with them."""

    directory: Path
    zones: tuple[str, ...] = ZONES
    datasets: list[DeclaredDataset] = field(default_factory=list)
    flows: list[Flow] = field(default_factory=list)
    rules: list[DeclaredRule] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    def add(self, dataset: Dataset, function: QueryFunction | None = None) -> None:
        module = function.__module__ if function else ""
        self.datasets.append(DeclaredDataset(dataset, function, module))

    def complain(self, text: str, place: Place | None) -> None:
        self.problems.append(Problem(text, place))

    def place_of_function(self, function: QueryFunction) -> Place:
        code = function.__code__
        return self.place(code.co_filename, code.co_firstlineno)

    def place_of_call(self, frame: FrameType | None) -> Place:
        assert frame is not None, "a declaration is called by someone"
        return self.place(frame.f_code.co_filename, frame.f_lineno)

    def place(self, file: str, line: int) -> Place:
        """Files are named as seen from the pipeline's folder, as long as they are in it."""
        path = Path(file)
        if path.is_relative_to(self.directory):
            return Place(str(path.relative_to(self.directory)), line)
        return Place(file, line)

    def joined(self) -> Declared:
        """What was declared, with rules at their tables; adds to `problems` what does not fit."""
        by_name = self._datasets_by_name()
        self._join_rules(by_name)
        flows = self._flows_by_name(by_name)
        self._complain_about_tables(by_name, flows)
        return Declared(by_name, flows)

    def _datasets_by_name(self) -> dict[str, Dataset]:
        by_name: dict[str, Dataset] = {}
        first: dict[str, DeclaredDataset] = {}
        for declared in self.datasets:
            dataset = declared.dataset
            needs_zone = not isinstance(dataset, Sink | TemporaryView)
            if wrong := complaint(dataset.name, self.zones, needs_zone=needs_zone):
                self.complain(wrong, dataset.place)
            elif dataset.name not in by_name:
                by_name[dataset.name] = dataset
                first[dataset.name] = declared
            elif not _is_same_file_again(first[dataset.name], declared):
                self.complain(
                    f"{dataset.name} is declared already, at {by_name[dataset.name].place};"
                    " give one of them another name",
                    dataset.place,
                )
        return by_name

    def _join_rules(self, by_name: dict[str, Dataset]) -> None:
        tables: dict[QueryFunction, list[str]] = {}
        for declared in self.datasets:
            if declared.function and by_name.get(declared.dataset.name) is declared.dataset:
                tables.setdefault(declared.function, []).append(declared.dataset.name)
        declared_functions = {declared.function for declared in self.datasets}
        # Decorators work from the bottom up; people read from the top down.
        for rule in reversed(self.rules):
            for name in tables.get(rule.function, ()):
                dataset = by_name[name]
                if isinstance(dataset, Checked):
                    wanted = (*dataset.expectations, rule.expectation)
                    by_name[name] = replace(dataset, expectations=wanted)
                else:
                    self.complain(
                        f"{name} is a {kind_of(dataset)}, and expectations are about streaming"
                        " tables and materialized views; move them there",
                        rule.place,
                    )
            if rule.function not in declared_functions:
                self.complain(
                    f"the expectation {rule.expectation.name!r} is about {rule.function.__name__},"
                    " which declares no table; add @table or @materialized_view to it",
                    rule.place,
                )
        for dataset in by_name.values():
            if isinstance(dataset, Checked):
                self._complain_about_repeated_rules(dataset)

    def _complain_about_repeated_rules(self, dataset: Checked) -> None:
        names = [expectation.name for expectation in dataset.expectations]
        for name in sorted({name for name in names if names.count(name) > 1}):
            self.complain(
                f"{dataset.name} has two expectations {name!r}; give each a name of its own",
                dataset.place,
            )
        for name in sorted(OWN_RULES.intersection(names)):
            self.complain(
                f"{dataset.name}: {name!r} is what quarantine calls a rule that nobody declares;"
                " give the expectation another name",
                dataset.place,
            )

    def _flows_by_name(self, by_name: Mapping[str, Dataset]) -> tuple[Flow, ...]:
        flows: dict[str, Flow] = {}
        refused = {declared.dataset.name for declared in self.datasets} - by_name.keys()
        for flow in self.flows:
            if flow.target in refused:
                continue  # Its table's name was complained about already.
            before = flows.get(flow.name)
            if before is not None and before.place == flow.place:
                continue  # A file that another one imports is read twice.
            wrong = flow_complaint(flow.name) or _target_complaint(flow, by_name)
            if before is not None:
                wrong = (
                    f"there is a flow {flow.name} already, at {before.place}; give one of them"
                    " another name"
                )
            if wrong:
                self.complain(wrong, flow.place)
            else:
                flows[flow.name] = flow
        self._complain_about_mixed_flows(flows)
        return tuple(flows.values())

    def _complain_about_mixed_flows(self, flows: Mapping[str, Flow]) -> None:
        """Change events decide by key what a table holds, so nothing else may write to it."""
        targets_of_changes = {flow.target for flow in flows.values() if flow.changes}
        for flow in flows.values():
            if flow.target in targets_of_changes and flow.changes is None:
                self.complain(
                    f"{flow.target} is kept by a flow of changes, and {flow.name} would append to"
                    " it; write to another table, or make it a flow of changes too",
                    flow.place,
                )
        self._complain_about_unlike_changes(flows)

    def _complain_about_unlike_changes(self, flows: Mapping[str, Flow]) -> None:
        """One table has one key and one way to be kept, whichever flow its changes come by."""
        first: dict[str, tuple[Flow, Changes]] = {}
        for flow in flows.values():
            if flow.changes is None:
                continue
            before, changes = first.setdefault(flow.target, (flow, flow.changes))
            for word, mine, other in _unlike(flow.changes, changes):
                self.complain(
                    f"{flow.name} and {before.name}, at {before.place}, both keep {flow.target}:"
                    f" one has {word} {mine}, the other {other}. Say the same in both, or write to"
                    " another table",
                    flow.place,
                )

    def _complain_about_tables(
        self, by_name: Mapping[str, Dataset], flows: tuple[Flow, ...]
    ) -> None:
        targets = {flow.target for flow in flows} | {flow.target for flow in self.flows}
        for dataset in by_name.values():
            if isinstance(dataset, StreamingTable) and dataset.sequence_by and not dataset.keys:
                self.complain(
                    f"{dataset.name} has an order of rows (SEQUENCE BY) and no key within which it"
                    " counts; name its columns by KEYS",
                    dataset.place,
                )
            if isinstance(dataset, StreamingTable | Sink) and dataset.name not in targets:
                self.complain(
                    f"nothing writes to {dataset.name}; add a flow with it as the target",
                    dataset.place,
                )


_current: ContextVar[Registry | None] = ContextVar("headrace_registry", default=None)


@contextmanager
def collecting(registry: Registry) -> Iterator[Registry]:
    """Let declarations go to this registry for a while."""
    token = _current.set(registry)
    try:
        yield registry
    finally:
        _current.reset(token)


def current(word: str) -> Registry:
    """The registry of the pipeline that is being read; `word` is what asks for it."""
    registry = _current.get()
    if registry is None:
        raise PipelineError(
            f"{word} declares a part of a pipeline, and none is being read here; put it into a"
            " file of a pipeline's folder, and run that: headrace pipelines run FOLDER"
        )
    return registry


def _target_complaint(flow: Flow, by_name: Mapping[str, Dataset]) -> str | None:
    target = by_name.get(flow.target)
    if target is None:
        return f"there is no {flow.target} to write to{nearest(flow.target, by_name)}"
    if not isinstance(target, StreamingTable | Sink):
        return (
            f"{flow.target} is a {kind_of(target)}, which its own query fills; flows write to"
            " streaming tables and sinks"
        )
    if flow.realtime and not isinstance(target, Sink):
        return (
            f"{flow.name} runs in real-time mode, which writes to topics only; {flow.target} is no"
            " sink"
        )
    if flow.changes and isinstance(target, Sink):
        return f"{flow.target} is a sink; changes are applied to streaming tables"
    return None


def _unlike(one: Changes, other: Changes) -> Iterator[tuple[str, str, str]]:
    """In which words two flows of changes differ that have to be the same for one table."""
    if set(one.keys) != set(other.keys):
        yield "KEYS", f"({', '.join(one.keys)})", f"({', '.join(other.keys)})"
    if one.scd_type != other.scd_type:
        yield "SCD TYPE", str(one.scd_type), str(other.scd_type)


def _is_same_file_again(first: DeclaredDataset, again: DeclaredDataset) -> bool:
    """Whether a declaration is the same one once more, as its file was imported by another."""
    return first.dataset.place == again.dataset.place and first.module != again.module
