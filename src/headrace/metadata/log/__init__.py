"""The metadata log of a quorum of one: its files, its snapshots, and formatting."""
