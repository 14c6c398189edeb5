"""Topics as this broker knows them: what it tells of them, and those that it makes itself."""
