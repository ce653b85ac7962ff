"""The costs of expressions: the estimate at compile time (`estimate`), and the actual cost of an evaluation (`actual`).

A unit is about 50 ns on a real server. Both have a table of functions; a call of any other function costs 1.
"""
