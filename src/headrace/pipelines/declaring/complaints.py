"""What SQL and Python files declare alike: merged views, sinks, flows of changes; their checks."""

from headrace.pipelines.declaring.option_names import sink_option_complaint
from headrace.pipelines.declaring.registry import QueryFunction, Registry
from headrace.pipelines.intervals import schedule_complaint, seconds_of
from headrace.pipelines.model import Changes, Flow, MergedView, Place, Sink

MERGES = ("sum", "min", "max")
GUARANTEES = ("exactly-once", "idempotent", "at-least-once")
SINK_FORMATS = ("json", "kafka")
"""json: the row as a JSON object. kafka: the flow's columns are `key`, `value` and so on."""


def declare_merged_view(
    registry: Registry, dataset: MergedView, function: QueryFunction | None = None
) -> None:
    """Note down a merged view; how it is merged must be known for each column."""
    if not dataset.merge:
        registry.complain(
            f"{dataset.name} merges nothing; say how two parts of each column that is no key"
            f" become one: {', '.join(MERGES)}",
            dataset.place,
        )
    for column, way in dataset.merge.items():
        if way not in MERGES:
            registry.complain(
                f"{dataset.name}: {column} cannot be merged by {way!r}, only by"
                f" {', '.join(MERGES)}; an average is a sum and a count",
                dataset.place,
            )
    complain_about_schedule(dataset.refresh, registry, dataset.place)
    registry.add(dataset, function)


def declare_sink(registry: Registry, sink: Sink) -> None:
    """Note down a sink, if its words are known."""
    if not sink.topic:
        registry.complain(
            f"the sink {sink.name} has no topic; say which one to write to", sink.place
        )
    if sink.format not in SINK_FORMATS:
        registry.complain(
            f"the sink {sink.name} has the format {sink.format!r}; it can be"
            f" {' or '.join(SINK_FORMATS)}",
            sink.place,
        )
    if sink.guarantee not in GUARANTEES:
        registry.complain(
            f"the sink {sink.name} has the guarantee {sink.guarantee!r}; it can be"
            f" {', '.join(GUARANTEES)}",
            sink.place,
        )
    for name in sink.options:
        if wrong := sink_option_complaint(name):
            registry.complain(f"the sink {sink.name}: {wrong}", sink.place)
    registry.add(sink)


def declare_changes(
    registry: Registry,
    place: Place,
    *,
    name: str,
    target: str,
    query: str,
    keys: tuple[str, ...],
    sequence_by: str,
    apply_as_deletes: str | None,
    scd_type: str,
    except_columns: tuple[str, ...],
    trigger: str | None = None,
) -> None:
    """Note down a flow of change events."""
    if scd_type not in ("1", "2"):
        registry.complain(
            f"{name}: there is no SCD type {scd_type}; 1 keeps the newest row of each key, 2 its"
            " history too",
            place,
        )
    if not keys:
        registry.complain(f"{name}: changes are applied by key; name its columns in keys", place)
    changes = Changes(
        keys=keys,
        sequence_by=sequence_by,
        apply_as_deletes=apply_as_deletes,
        scd_type=2 if scd_type == "2" else 1,
        except_columns=except_columns,
    )
    complain_about_interval(trigger, "trigger", registry, place)
    registry.flows.append(Flow(name, target, query, place, changes=changes, trigger=trigger))


def complain_about_schedule(refresh: str | None, registry: Registry, place: Place) -> None:
    if refresh is not None and (wrong := schedule_complaint(refresh)):
        registry.complain(f"refresh: {wrong}", place)


def complain_about_interval(
    text: str | None, argument: str, registry: Registry, place: Place
) -> None:
    if text is None:
        return
    try:
        seconds_of(text)
    except ValueError as error:
        registry.complain(f"{argument}: {error}", place)
