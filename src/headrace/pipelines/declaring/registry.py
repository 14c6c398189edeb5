"""Declarations of a pipeline's files, collected while the files are read.

Declarations come in any order: a flow before its table, a rule above or below the decorator that
makes the table. They are joined when all files have been read.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FrameType
from typing import Any

from headrace.pipelines import model
from headrace.pipelines.declaring.names import complaint, flow_complaint
from headrace.pipelines.problems import PipelineError, Problem, nearest

QueryFunction = Callable[[], Any]
Checked = model.StreamingTable | model.MaterializedView
"""The datasets that may have expectations."""
OWN_RULES = frozenset(("partition", "unreadable"))
"""Reserved rule names of quarantine, copied from `lake.quarantine`, whose import is slow."""


@dataclass(frozen=True, slots=True)
class DeclaredDataset:
    """A dataset, and the function that declares it, if any."""

    dataset: model.Dataset
    function: QueryFunction | None = None
    module: str = ""


@dataclass(frozen=True, slots=True)
class DeclaredRule:
    """An expectation that decorates a function, which may become a table before or after."""

    function: QueryFunction
    expectation: model.Expectation
    location: model.Location


@dataclass(frozen=True, slots=True)
class Declared:
    """All datasets and flows of a folder, joined."""

    datasets: Mapping[str, model.Dataset]
    flows: tuple[model.Flow, ...]


@dataclass(slots=True)
class Registry:
    """Collects declarations and their problems."""

    directory: Path
    zones: tuple[str, ...] = model.ZONES
    datasets: list[DeclaredDataset] = field(default_factory=list)
    flows: list[model.Flow] = field(default_factory=list)
    rules: list[DeclaredRule] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    def add(self, dataset: model.Dataset, function: QueryFunction | None = None) -> None:
        module = function.__module__ if function else ""
        self.datasets.append(DeclaredDataset(dataset, function, module))

    def complain(self, text: str, location: model.Location | None) -> None:
        self.problems.append(Problem(text, location))

    def location_of_function(self, function: QueryFunction) -> model.Location:
        code = function.__code__
        return self.location(code.co_filename, code.co_firstlineno)

    def location_of_call(self, frame: FrameType | None) -> model.Location:
        assert frame is not None, "a declaration is called by someone"
        return self.location(frame.f_code.co_filename, frame.f_lineno)

    def location(self, file: str, line: int) -> model.Location:
        """Return a location; a file in the pipeline's folder is named relative to it."""
        path = Path(file)
        if path.is_relative_to(self.directory):
            return model.Location(str(path.relative_to(self.directory)), line)
        return model.Location(file, line)

    def joined(self) -> Declared:
        """Return all declarations, with rules at their tables; `problems` gets the conflicts."""
        by_name = self._datasets_by_name()
        self._join_rules(by_name)
        flows = self._flows_by_name(by_name)
        self._complain_about_tables(by_name, flows)
        return Declared(by_name, flows)

    def _datasets_by_name(self) -> dict[str, model.Dataset]:
        by_name: dict[str, model.Dataset] = {}
        first: dict[str, DeclaredDataset] = {}
        for declared in self.datasets:
            dataset = declared.dataset
            needs_zone = not isinstance(dataset, model.Sink | model.TemporaryView)
            if wrong := complaint(dataset.name, self.zones, needs_zone=needs_zone):
                self.complain(wrong, dataset.location)
            elif dataset.name not in by_name:
                by_name[dataset.name] = dataset
                first[dataset.name] = declared
            elif not _is_same_file_again(first[dataset.name], declared):
                self.complain(
                    f"{dataset.name} is declared already, at {by_name[dataset.name].location};"
                    " give one of them another name",
                    dataset.location,
                )
        return by_name

    def _join_rules(self, by_name: dict[str, model.Dataset]) -> None:
        tables: dict[QueryFunction, list[str]] = {}
        for declared in self.datasets:
            if declared.function and by_name.get(declared.dataset.name) is declared.dataset:
                tables.setdefault(declared.function, []).append(declared.dataset.name)
        declared_functions = {declared.function for declared in self.datasets}
        # Decorators run from the bottom up; rules apply from the top down.
        for rule in reversed(self.rules):
            for name in tables.get(rule.function, ()):
                dataset = by_name[name]
                if isinstance(dataset, Checked):
                    wanted = (*dataset.expectations, rule.expectation)
                    by_name[name] = replace(dataset, expectations=wanted)
                else:
                    self.complain(
                        f"{name} is a {model.kind_of(dataset)}, and expectations are about"
                        " streaming tables and materialized views; move them there",
                        rule.location,
                    )
            if rule.function not in declared_functions:
                self.complain(
                    f"the expectation {rule.expectation.name!r} is about {rule.function.__name__},"
                    " which declares no table; add @table or @materialized_view to it",
                    rule.location,
                )
        for dataset in by_name.values():
            if isinstance(dataset, Checked):
                self._complain_about_repeated_rules(dataset)

    def _complain_about_repeated_rules(self, dataset: Checked) -> None:
        names = [expectation.name for expectation in dataset.expectations]
        for name in sorted({name for name in names if names.count(name) > 1}):
            self.complain(
                f"{dataset.name} has two expectations {name!r}; give each a name of its own",
                dataset.location,
            )
        for name in sorted(OWN_RULES.intersection(names)):
            self.complain(
                f"{dataset.name}: {name!r} is a reserved rule name of quarantine;"
                " give the expectation another name",
                dataset.location,
            )

    def _flows_by_name(self, by_name: Mapping[str, model.Dataset]) -> tuple[model.Flow, ...]:
        flows: dict[str, model.Flow] = {}
        refused = {declared.dataset.name for declared in self.datasets} - by_name.keys()
        for flow in self.flows:
            if flow.target in refused:
                continue  # The invalid name of its table is reported already.
            before = flows.get(flow.name)
            if before is not None and before.location == flow.location:
                continue  # A file that another one imports is read twice.
            wrong = flow_complaint(flow.name) or _target_complaint(flow, by_name)
            if before is not None:
                wrong = (
                    f"there is a flow {flow.name} already, at {before.location}; give one of them"
                    " another name"
                )
            if wrong:
                self.complain(wrong, flow.location)
            else:
                flows[flow.name] = flow
        self._complain_about_mixed_flows(flows)
        return tuple(flows.values())

    def _complain_about_mixed_flows(self, flows: Mapping[str, model.Flow]) -> None:
        """Reject other flows into a table of change events, which decide by key what it holds."""
        targets_of_changes = {flow.target for flow in flows.values() if flow.changes}
        for flow in flows.values():
            if flow.target in targets_of_changes and flow.changes is None:
                self.complain(
                    f"{flow.target} is kept by a flow of changes, and {flow.name} would append to"
                    " it; write to another table, or make it a flow of changes too",
                    flow.location,
                )
        self._complain_about_differing_changes(flows)

    def _complain_about_differing_changes(self, flows: Mapping[str, model.Flow]) -> None:
        """Reject flows of changes into one table that differ in key or SCD type."""
        first: dict[str, tuple[model.Flow, model.Changes]] = {}
        for flow in flows.values():
            if flow.changes is None:
                continue
            before, changes = first.setdefault(flow.target, (flow, flow.changes))
            for word, mine, other in _differences(flow.changes, changes):
                self.complain(
                    f"{flow.name} and {before.name}, at {before.location}, both keep {flow.target}:"
                    f" one has {word} {mine}, the other {other}. Use the same in both, or write to"
                    " another table",
                    flow.location,
                )

    def _complain_about_tables(
        self, by_name: Mapping[str, model.Dataset], flows: tuple[model.Flow, ...]
    ) -> None:
        targets = {flow.target for flow in flows} | {flow.target for flow in self.flows}
        for dataset in by_name.values():
            if (
                isinstance(dataset, model.StreamingTable)
                and dataset.sequence_by
                and not dataset.keys
            ):
                self.complain(
                    f"{dataset.name} has a SEQUENCE BY, which orders the rows of a key, and no key;"
                    " name the key columns with KEYS",
                    dataset.location,
                )
            if (
                isinstance(dataset, model.StreamingTable | model.Sink)
                and dataset.name not in targets
            ):
                self.complain(
                    f"nothing writes to {dataset.name}; add a flow with it as the target",
                    dataset.location,
                )


_current: ContextVar[Registry | None] = ContextVar("headrace_registry", default=None)


@contextmanager
def collecting(registry: Registry) -> Iterator[Registry]:
    """Direct declarations to this registry within the block."""
    token = _current.set(registry)
    try:
        yield registry
    finally:
        _current.reset(token)


def current(word: str) -> Registry:
    """Return the registry of the pipeline that is being loaded; `word` names the declaration."""
    registry = _current.get()
    if registry is None:
        raise PipelineError(
            f"{word} declares a part of a pipeline, and no pipeline is loaded here; put it into a"
            " file of a pipeline's folder, and run that: headrace pipelines run FOLDER"
        )
    return registry


def _target_complaint(flow: model.Flow, by_name: Mapping[str, model.Dataset]) -> str | None:
    target = by_name.get(flow.target)
    if target is None:
        return f"there is no {flow.target} to write to{nearest(flow.target, by_name)}"
    if not isinstance(target, model.StreamingTable | model.Sink):
        return (
            f"{flow.target} is a {model.kind_of(target)}, which its own query fills; flows write to"
            " streaming tables and sinks"
        )
    if flow.realtime and not isinstance(target, model.Sink):
        return (
            f"{flow.name} runs in real-time mode, which writes to topics only; {flow.target} is not"
            " a sink"
        )
    if flow.changes and isinstance(target, model.Sink):
        return f"{flow.target} is a sink; changes are applied to streaming tables"
    return None


def _differences(one: model.Changes, other: model.Changes) -> Iterator[tuple[str, str, str]]:
    """Yield the properties that must be equal for one table and differ."""
    if set(one.keys) != set(other.keys):
        yield "KEYS", f"({', '.join(one.keys)})", f"({', '.join(other.keys)})"
    if one.scd_type != other.scd_type:
        yield "SCD TYPE", str(one.scd_type), str(other.scd_type)


def _is_same_file_again(first: DeclaredDataset, again: DeclaredDataset) -> bool:
    """Return whether a declaration repeats because another file imported its file."""
    return first.dataset.location == again.dataset.location and first.module != again.module
