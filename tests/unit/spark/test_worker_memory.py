"""Workers leave what they have loaded for good alone when they collect garbage."""

import subprocess
import sys

_SCRIPT = """
import gc, json, os
from headrace.spark import worker_memory

worker_memory.task_done()
worker_memory.spare_workers()
if not os.fork():
    inherited = gc.get_freeze_count()
    for _ in range(3):
        kept = [[] for _ in range(1_000)]
        worker_memory.task_done()
    unchanged = gc.get_freeze_count()
    import csv
    worker_memory.task_done()
    print(json.dumps([inherited, unchanged, gc.get_freeze_count()]), flush=True)
    os._exit(0)
os.wait()
print(gc.get_freeze_count())
"""


def test_a_worker_spares_what_it_inherits_and_what_its_tasks_load_and_its_parent_nothing() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT], capture_output=True, text=True, check=True
    )
    worker, parent = done.stdout.splitlines()
    inherited, after_tasks, after_loading = (int(part) for part in worker.strip("[]").split(","))
    assert int(parent) == 0
    assert inherited > 1_000
    assert abs(after_tasks - inherited) < 500
    assert after_loading > after_tasks + 1_000
