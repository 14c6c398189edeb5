"""The metadata half of a node: its replica of the quorum, and the controller on top of it."""
