"""The `headrace` command: one module per command, imported only when it is called."""
