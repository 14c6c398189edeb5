"""The wall around a server's memory, tried in processes of its own."""

import subprocess
import sys

STOP_BEFORE_THE_WALL = """
import resource, threading
from headrace.serving.memory_wall import _data_bytes, leave_room_to_stop

resource.setrlimit(resource.RLIMIT_DATA, (_data_bytes(), resource.RLIM_INFINITY))
threading.stack_size(64 << 20)
for attempt in "before", "after":
    try:
        threading.Thread(target=print, args=("started", attempt)).start()
    except RuntimeError:
        print("refused", attempt)
    leave_room_to_stop()
"""


def test_a_server_whose_queries_have_taken_all_memory_still_has_room_to_stop() -> None:
    """Stopping starts threads; without room it ended in a traceback and went on running."""
    command = [sys.executable, "-c", STOP_BEFORE_THE_WALL]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert told.splitlines() == ["refused before", "started after"]
