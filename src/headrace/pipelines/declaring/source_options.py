"""The options that `[sources.x.options]` may have, so that a typo does not go unnoticed.

Spark's readers pass over what they do not know; a limit with a letter too few is then no limit.
"""

from headrace.pipelines.problems import nearest
from headrace.spark.source.options import STREAM_OPTIONS

_ELSEWHERE = {
    "subscribe": "write topic or topics in [sources.{0}]",
    "subscribepattern": "write pattern in [sources.{0}]",
    "assign": "write topic in [sources.{0}]",
    "format": "write format in [sources.{0}]",
    "schema": "write schema in [sources.{0}]",
    "endingoffsets": "a stream has no end",
    "endingtimestamp": "a stream has no end",
    "endingoffsetsbytimestamp": "a stream has no end",
}
_CLIENT = "kafka."


def option_complaint(source: str, name: str) -> str | None:
    """What is wrong with the name of an option, or None; names may be in any case, as Spark's."""
    lowered = name.lower()
    if lowered.startswith(_CLIENT) or lowered in map(str.lower, STREAM_OPTIONS):
        return None
    if lowered in _ELSEWHERE:
        return f"{name} is no option here: {_ELSEWHERE[lowered].format(source)}"
    return f"there is no option {name}{nearest(name, STREAM_OPTIONS)}"
