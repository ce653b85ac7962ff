"""What expressions cost: an estimate when they are written (`estimate`), and what was spent when they ran (`actual`).

A unit is about 50 ns on a real server. Both sides have a table of functions; where neither says anything, a call is one
unit.
"""
