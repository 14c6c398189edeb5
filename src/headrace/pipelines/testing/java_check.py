"""A pytest plugin that ends a run without Java in one line, instead of an error for each test."""

import pytest

from headrace.spark.java import JavaMissing, find_java


def pytest_collection_finish(session: pytest.Session) -> None:
    """Look for Java once if any selected test starts Spark."""
    if session.config.option.collectonly:
        return
    if not any("headrace_spark" in getattr(item, "fixturenames", ()) for item in session.items):
        return
    try:
        find_java()
    except JavaMissing as error:
        raise pytest.UsageError(str(error)) from None
