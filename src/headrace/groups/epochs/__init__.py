"""Common parts of consumer, share and streams groups: epochs, target assignments, drafts."""
