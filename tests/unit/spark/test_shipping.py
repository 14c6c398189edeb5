"""What is sent to executors."""

import os
import subprocess
import sys
from pathlib import Path

from headrace.spark.shipping import package_zip


def test_headrace_is_imported_from_the_zip_with_its_data_files(tmp_path: Path) -> None:
    archive = package_zip(tmp_path)
    program = (
        "import headrace.spark.sink.options, pyspark_headrace, headrace.client.properties as p;"
        "assert p.names(); print(headrace.__file__)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(archive)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(str(archive))
