"""Access to the machine: clocks, files, tasks, logs, processes."""
