"""Property-based tests with hypothesis: objects of any resource, and a state machine that exercises an operator.

* `objects` makes values for a schema, and objects that the API server accepts, with the rules of their definitions;
* `patterns` makes texts for the patterns of schemas;
* `machine` is `OperatorMachine`.

Nothing else in the package imports hypothesis, which the extra `strategies` installs.
"""

from __future__ import annotations

from fakekube.strategies.machine import OperatorMachine
from fakekube.strategies.objects import objects, values

__all__ = ["OperatorMachine", "objects", "values"]
