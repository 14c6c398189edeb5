"""The modules that the process of a stream imports first."""

import subprocess
import sys

import pytest

pytest.importorskip("pyspark")


def test_planning_a_stream_of_topics_loads_no_parquet() -> None:
    """Only tasks write files; each stream on a cluster would pay for it when it starts."""
    code = (
        "import sys, headrace.spark.source.source, headrace.spark.source.stream_reader;"
        "print('pyarrow' in sys.modules, 'pyarrow.parquet' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "True False\n"
