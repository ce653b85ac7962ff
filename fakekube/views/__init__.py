"""Other forms of an object that a client may ask for: rows of a Table, metadata only."""
