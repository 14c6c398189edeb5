"""Which instance writes, and how the others hand writes on to it."""
