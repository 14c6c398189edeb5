"""The options that sources, sinks and `[client]` may have, so that a typo does not go unnoticed.

Spark's readers pass over what they do not know; a limit with a letter too few is then no limit.
"""

from headrace.spark.option_names import CLIENT_PREFIX, Side, option_complaint, property_complaint
from headrace.spark.sink.options import SINK_OPTIONS
from headrace.spark.source.options import STREAM_OPTIONS

OUTPUT_MODE = "outputMode"
"""An option of a sink that is the runner's, not the writer's."""

_ELSEWHERE = {
    "subscribe": "write topic or topics in [sources.{0}]",
    "subscribepattern": "write pattern in [sources.{0}]",
    "assign": "write topic in [sources.{0}]",
    "format": "write format in [sources.{0}]",
    "schema": "write schema in [sources.{0}]",
    "endingoffsets": "a stream has no end",
    "endingtimestamp": "a stream has no end",
    "endingoffsetsbytimestamp": "a stream has no end",
    "pushfilters": "a query may ask a topic more than one question, and Spark would take one's"
    " filters for all; startingTimestamp and startingOffsets limit what is read",
}


def source_option_complaint(source: str, name: str) -> str | None:
    """What is wrong with the name of an option, or None; names may be in any case, as Spark's."""
    lowered = name.lower()
    if lowered.startswith(CLIENT_PREFIX):
        return property_complaint(lowered.removeprefix(CLIENT_PREFIX), Side.SOURCE)
    if lowered in _ELSEWHERE:
        return f"{name} is no option here: {_ELSEWHERE[lowered].format(source)}"
    return option_complaint(name, STREAM_OPTIONS)


def sink_option_complaint(name: str) -> str | None:
    """The same for an option of a sink."""
    lowered = name.lower()
    if lowered.startswith(CLIENT_PREFIX):
        return property_complaint(lowered.removeprefix(CLIENT_PREFIX), Side.SINK)
    if lowered == OUTPUT_MODE.lower() and name != OUTPUT_MODE:
        return f"{name} is written {OUTPUT_MODE}"
    return option_complaint(name, (*SINK_OPTIONS, OUTPUT_MODE))


def client_property_complaint(name: str) -> str | None:
    """The same for a property of `[client]`, which all clients of a pipeline get."""
    return property_complaint(name, Side.SOURCE, prefix="")
