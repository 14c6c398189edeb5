"""The options that sources, sinks and `[client]` may have, so that a typo is an error.

Spark's readers ignore unknown options; a misspelled limit would be no limit.
"""

from headrace.spark.option_names import CLIENT_PREFIX, Side, option_complaint, property_complaint
from headrace.spark.sink.options import SINK_OPTIONS
from headrace.spark.source.options import STREAM_OPTIONS

OUTPUT_MODE = "outputMode"
"""An option of a sink for the runner, not for the writer."""

_ELSEWHERE = {
    "subscribe": "write topic or topics in [sources.{0}]",
    "subscribepattern": "write pattern in [sources.{0}]",
    "assign": "write topic in [sources.{0}]",
    "format": "write format in [sources.{0}]",
    "schema": "write schema in [sources.{0}]",
    "endingoffsets": "a stream has no end",
    "endingtimestamp": "a stream has no end",
    "endingoffsetsbytimestamp": "a stream has no end",
    "pushfilters": "Spark would apply the filters of one query to all queries of the topic; use"
    " startingTimestamp and startingOffsets to limit the records",
}


def source_option_complaint(source: str, name: str) -> str | None:
    """Return the problem of a source's option, or None; case does not matter, as in Spark."""
    lowered = name.lower()
    if lowered.startswith(CLIENT_PREFIX):
        return property_complaint(lowered.removeprefix(CLIENT_PREFIX), Side.SOURCE)
    if lowered in _ELSEWHERE:
        return f"{name} is not allowed here: {_ELSEWHERE[lowered].format(source)}"
    return option_complaint(name, STREAM_OPTIONS)


def sink_option_complaint(name: str) -> str | None:
    """Return the problem of a sink's option, or None."""
    lowered = name.lower()
    if lowered.startswith(CLIENT_PREFIX):
        return property_complaint(lowered.removeprefix(CLIENT_PREFIX), Side.SINK)
    if lowered == OUTPUT_MODE.lower() and name != OUTPUT_MODE:
        return f"{name} is written {OUTPUT_MODE}"
    return option_complaint(name, (*SINK_OPTIONS, OUTPUT_MODE))


def client_property_complaint(name: str) -> str | None:
    """Return the problem of a property of `[client]`, or None."""
    return property_complaint(name, Side.SOURCE, prefix="")
