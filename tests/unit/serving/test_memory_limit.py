"""The wall around a server's memory, tried in processes of its own."""

import subprocess
import sys

STOP_BEFORE_THE_WALL = """
import resource, threading
from headrace.serving.memory_limit import _data_bytes, extend_limit_to_stop

resource.setrlimit(resource.RLIMIT_DATA, (_data_bytes(), resource.RLIM_INFINITY))
threading.stack_size(64 << 20)
for attempt in "before", "after":
    try:
        threading.Thread(target=print, args=("started", attempt)).start()
    except RuntimeError:
        print("refused", attempt)
    extend_limit_to_stop()
"""


def test_a_server_out_of_memory_can_still_stop() -> None:
    """Stopping starts threads; without room it ended in a traceback and went on running."""
    command = [sys.executable, "-c", STOP_BEFORE_THE_WALL]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert output.splitlines() == ["refused before", "started after"]
