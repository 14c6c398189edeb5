"""Problems of a pipeline, reported all at once, each with file and line.

The parts that read and check a folder collect problems; only the last one raises them, so that a
user sees every mistake in one run.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from headrace.errors import HeadraceError
from headrace.pipelines.model import Location, Pipeline, StreamingTable


@dataclass(frozen=True, slots=True)
class Problem:
    """A mistake, and the advice to correct it."""

    text: str
    location: Location | None = None

    def __str__(self) -> str:
        return self.text if self.location is None else f"{self.location}: {self.text}"


class PipelineError(HeadraceError):
    """A pipeline that cannot run as declared; `problems` has all that was found."""

    def __init__(self, *problems: Problem | str) -> None:
        self.problems = tuple(
            Problem(problem) if isinstance(problem, str) else problem for problem in problems
        )
        super().__init__("\n".join(map(str, self.problems)))

    def located(self, location: Location, what: str = "") -> list[Problem]:
        """Return the problems; those without a location get this one, with `what` in front."""
        return [
            one if one.location else Problem(f"{what}{one.text}", location) for one in self.problems
        ]


def raise_if_any(problems: Iterable[Problem]) -> None:
    """Raise all problems as one error, each once, in the order of files and lines."""
    if found := in_order(problems):
        raise PipelineError(*found)


def in_order(problems: Iterable[Problem]) -> list[Problem]:
    """Return each problem once, by file and line."""
    return sorted(dict.fromkeys(problems), key=_order)


def nearest(name: str, names: Iterable[str], prefix: str = "") -> str:
    """Return `; did you mean staging.orders?` for a similar name, or an empty text.

    `prefix` is common to all names and kept out of the comparison.
    """
    from difflib import get_close_matches  # Only ever needed on the way to an error.

    near = [prefix + one for one in get_close_matches(name, sorted(names), n=2, cutoff=0.6)]
    return f"; did you mean {' or '.join(near)}?" if near else ""


def no_streaming_table(pipeline: Pipeline, name: str) -> str:
    """Return the message for an unknown streaming table; a forgotten zone is the usual cause."""
    tables = [one.name for one in pipeline.datasets.values() if isinstance(one, StreamingTable)]
    same = [table for table in tables if table.partition(".")[2] == name.rpartition(".")[2]]
    near = f"; did you mean {' or '.join(same[:2])}?" if same else nearest(name, tables)
    there = f"there are {', '.join(tables)}" if tables else "it has none"
    return f"{name} is not a streaming table of {pipeline.settings.name} ({there}){near}"


def _order(problem: Problem) -> tuple[str, int]:
    return (problem.location.file, problem.location.line) if problem.location else ("", 0)
