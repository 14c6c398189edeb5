"""What a registry counts, and the page that Prometheus reads."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from headrace.http.metrics import answer_families
from headrace.runtime.exposition import Family, counter, gauge
from headrace.runtime.metrics import Durations
from headrace.runtime.process import process_families

if TYPE_CHECKING:
    from headrace.registry.service import Registry

_PREFIX = "headrace_registry"


class RegistryMetrics:
    """Plain integers, of the event loop alone."""

    def __init__(self) -> None:
        self.answers: dict[tuple[str, int], int] = {}
        """By operation and HTTP status."""
        self.durations: dict[str, Durations] = {}
        self.quick_answers = 0
        self.forwarded = 0
        self.written = 0

    def answered(self, operation: str, status: int, duration_ns: int) -> None:
        key = (operation, status)
        self.answers[key] = self.answers.get(key, 0) + 1
        self.durations.setdefault(operation, Durations()).add_ns(duration_ns)


def families(registry: "Registry") -> Iterator[Family]:
    """Everything, as it is now."""
    metrics, state = registry.metrics, registry.state
    yield from answer_families(_PREFIX, metrics.answers, metrics.durations)
    yield counter(
        f"{_PREFIX}_quick_answers_total",
        "Schemas by id that were answered from ready bytes.",
        metrics.quick_answers,
    )
    yield counter(
        f"{_PREFIX}_forwarded_total", "Writes handed on to the leader.", metrics.forwarded
    )
    yield counter(f"{_PREFIX}_records_written_total", "Records written.", metrics.written)
    yield counter(
        f"{_PREFIX}_records_skipped_total",
        "Records of the topic that could not be read.",
        registry.store.skipped,
    )
    yield gauge(f"{_PREFIX}_next_offset", "How far the topic is read.", registry.store.next_offset)
    yield gauge(f"{_PREFIX}_leader", "1 if this instance leads.", int(registry.is_leader))
    yield gauge(f"{_PREFIX}_leader_known", "1 if somebody leads.", int(registry.leader is not None))
    yield gauge(f"{_PREFIX}_subjects", "Subjects, deleted ones too.", len(state.subjects))
    yield gauge(
        f"{_PREFIX}_versions",
        "Versions of all subjects, deleted ones too.",
        sum(map(len, state.subjects.values())),
    )
    yield from process_families()
