"""What is wrong with a pipeline, told all at once and each with the file and the line.

Someone who fixes a folder of files wants to see every mistake in one go, so the parts that read
and check it collect problems, and only the last of them raises.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from headrace.errors import HeadraceError
from headrace.pipelines.model import Pipeline, Place, StreamingTable


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake: what is wrong and what to do about it."""

    text: str
    place: Place | None = None

    def __str__(self) -> str:
        return self.text if self.place is None else f"{self.place}: {self.text}"


class PipelineError(HeadraceError):
    """A pipeline that cannot be run as it is; `problems` has all that was found."""

    def __init__(self, *problems: Problem | str) -> None:
        self.problems = tuple(
            Problem(problem) if isinstance(problem, str) else problem for problem in problems
        )
        super().__init__("\n".join(map(str, self.problems)))

    def placed(self, place: Place, what: str = "") -> list[Problem]:
        """The problems; those without a place of their own get this one, and say `what` first."""
        return [one if one.place else Problem(f"{what}{one.text}", place) for one in self.problems]


def raise_if_any(problems: Iterable[Problem]) -> None:
    """Raise all problems as one error, each once, in the order of files and lines."""
    if found := in_order(problems):
        raise PipelineError(*found)


def in_order(problems: Iterable[Problem]) -> list[Problem]:
    """Each problem once, by file and line."""
    return sorted(dict.fromkeys(problems), key=_order)


def nearest(name: str, names: Iterable[str], prefix: str = "") -> str:
    """`; did you mean staging.orders?` when something like the name is there, else nothing.

    What all names begin with is given apart, as it would make them all alike.
    """
    from difflib import get_close_matches  # Only ever needed on the way to an error.

    near = [prefix + one for one in get_close_matches(name, sorted(names), n=2, cutoff=0.6)]
    return f"; did you mean {' or '.join(near)}?" if near else ""


def no_streaming_table(pipeline: Pipeline, name: str) -> str:
    """That a name is no streaming table's, and which ones there are; a zone is easily left out."""
    tables = [one.name for one in pipeline.datasets.values() if isinstance(one, StreamingTable)]
    same = [table for table in tables if table.partition(".")[2] == name.rpartition(".")[2]]
    near = f"; did you mean {' or '.join(same[:2])}?" if same else nearest(name, tables)
    there = f"there are {', '.join(tables)}" if tables else "it has none"
    return f"{name} is no streaming table of {pipeline.settings.name} ({there}){near}"


def _order(problem: Problem) -> tuple[str, int]:
    return (problem.place.file, problem.place.line) if problem.place else ("", 0)
