"""The costs of expressions: the estimate at compile time (`estimate`), the cost of an evaluation (`runtime_cost`), the `limits`.

A unit is about 50 ns on a real server. Both have a table of functions; a call of any other function costs 1.
"""
