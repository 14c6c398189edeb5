"""The generations of a pipeline's tables, and their removal.

A replay builds a new generation next to the current one and switches to it. The old generation
stays for the way back, and takes disk space until it is dropped. The same holds for tables of
merged views from before a change of architecture.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from headrace.lake.catalog import Catalog, Lake
from headrace.lake.merged_views import layers_of
from headrace.pipelines.model import Architecture, MergedView, Pipeline
from headrace.pipelines.problems import PipelineError
from headrace.pipelines.running.state.folders import PipelineState
from headrace.pipelines.running.tables.architectures import changed_views, is_built
from headrace.pipelines.running.tables.layers import batch_name, tables_of
from headrace.runtime import files

FIRST_GENERATION = 1
_RUN_FIRST = "Run the pipeline, as by `headrace pipelines run FOLDER --once`; then switch back"


@dataclass(frozen=True, slots=True)
class TableGeneration:
    """One generation of one table."""

    table: str
    generation: int
    is_live: bool
    rows: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Dropped:
    """The removed tables, and the freed bytes."""

    generation: int
    tables: tuple[str, ...]
    freed_bytes: int


def listed(lake: Lake, pipeline: Pipeline) -> list[TableGeneration]:
    """Return all generations of a pipeline's tables, with their sizes."""
    return [
        _measured(lake, table, number, is_live=is_live)
        for (table, number), is_live in _known(lake, pipeline).items()
    ]


def next_number(lake: Lake, state: PipelineState, pipeline: str) -> int:
    """Return the next free generation number of a pipeline's tables."""
    known = (
        number
        for entry in lake.entries()
        for number, made in entry.generations.items()
        if made.pipeline in (pipeline, "")
    )
    return max(max(known, default=FIRST_GENERATION), state.newest_dropped()) + 1


def drop(lake: Lake, state: PipelineState, pipeline: Pipeline, generation: int) -> Dropped:
    """Remove a generation of a pipeline, except tables in which it is current.

    Ways back are removed first, then tables, then checkpoints: a crash in between leaves
    checkpoints without references, which the same command removes. Checkpoints of flows to topics
    stay, since they prevent records from being sent again.
    """
    catalog, known = lake.catalog(), _known(lake, pipeline)
    old = [
        table
        for (table, number), is_live in known.items()
        if number == generation and not is_live
        if not is_built(catalog, state, pipeline, table, number)
    ]
    if not old:
        raise PipelineError(_refusal(known, pipeline.settings.name, generation))
    state.record_drop(generation, old)
    freed = 0
    # In old lakes layers are current although no view has them.
    lake.switch({}, hidden=_idle_layers(lake, pipeline).intersection(old))
    for table in old:
        freed += files.tree_size(str(lake.table(table, generation).place))
        lake.drop(table, generation)
    freed += state.forget_flows(_flow_names(pipeline, old), generation)
    return Dropped(generation, tuple(old), freed)


def check_way_back(catalog: Catalog, pipeline: Pipeline, earlier: Collection[str]) -> None:
    """Reject a switch back to tables of another architecture.

    Readers would see old and new tables mixed, and a view next to a table of its name. Readers must
    see the architecture of pipeline.toml, which they do after a run.
    """
    chosen = pipeline.settings.architecture
    if changed := changed_views(catalog, pipeline):
        raise PipelineError(
            f"readers do not see {', '.join(changed)} in the architecture `{chosen.value}` yet."
            f" {_RUN_FIRST}"
        )
    for view in pipeline.datasets.values():
        if not isinstance(view, MergedView):
            continue
        other = view.name if chosen is Architecture.LAMBDA else batch_name(view.name)
        if other in earlier:
            raise PipelineError(
                f"the last replay was made before {view.name} had the architecture"
                f" `{chosen.value}`, so the way back leads to another architecture. Change it back."
                f" {_RUN_FIRST}"
            )


def _flow_names(pipeline: Pipeline, tables: Collection[str]) -> list[str]:
    """Return the flows into these tables; a merged view's flow is named after its table."""
    return [*tables, *(flow.name for flow in pipeline.flows if flow.target in tables)]


def _known(lake: Lake, pipeline: Pipeline) -> dict[tuple[str, int], bool]:
    """Return each generation of each table of a pipeline, and whether it is current."""
    idle = _idle_layers(lake, pipeline)
    return {
        (entry.name, number): number == entry.current and entry.name not in idle
        for entry in lake.entries()
        for number in sorted(entry.generations)
        if entry.generations[number].pipeline == pipeline.settings.name
    }


def _idle_layers(lake: Lake, pipeline: Pipeline) -> set[str]:
    """Return the layers of merged views that are unused since a change to kappa."""
    views = [one.name for one in pipeline.datasets.values() if isinstance(one, MergedView)]
    layers = {layer for view in views for layer in tables_of(view, Architecture.LAMBDA)}
    return layers.difference(*(layers_of(view) for view in lake.views().values()))


def _refusal(known: Mapping[tuple[str, int], bool], name: str, generation: int) -> str:
    there = {table: is_live for (table, number), is_live in known.items() if number == generation}
    if any(there.values()):
        return (
            f"generation {generation} of {name} is the current one, which cannot be removed."
            " Switch first, with `headrace pipelines replay FOLDER`, or `replay --back FOLDER`"
        )
    if there:
        return (
            f"{', '.join(there)} of generation {generation} are built for a change of"
            f" `architecture`. Run {name} until readers see them; or change it back, stop the"
            " pipeline, and drop them then"
        )
    numbers = ", ".join(map(str, sorted({number for _, number in known}))) or "none"
    return f"{name} has no generation {generation}; there are: {numbers}"


def _measured(lake: Lake, name: str, generation: int, *, is_live: bool) -> TableGeneration:
    table = lake.table(name, generation)
    return TableGeneration(
        table=name,
        generation=generation,
        is_live=is_live,
        rows=sum(max(file.rows, 0) for file in table.files()),
        size_bytes=files.tree_size(str(table.place)),
    )
