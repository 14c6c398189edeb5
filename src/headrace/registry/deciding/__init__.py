"""Pure decisions: a state and a request come in, records and a reply go out."""
