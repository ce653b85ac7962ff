"""The cost limits of expressions: of evaluations, and of estimates at compile time.

Specified by: k8s.io/apiserver/pkg/apis/cel/config.go (the limits of evaluations);
k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go (those of estimates).
"""

from typing import Final

#: The cost limit of one evaluation of an expression (PerCallLimit).
PER_CALL_LIMIT: Final = 1_000_000
#: The cost limit of all rules for one resource, and of all expressions of a policy with one binding (RuntimeCELCostBudget).
RUNTIME_COST_BUDGET: Final = 10_000_000
#: The cost limit of the match conditions of one webhook or policy (RuntimeCELCostBudgetMatchConditions).
RUNTIME_COST_BUDGET_MATCH_CONDITIONS: Final = 2_500_000
#: The estimated cost above which a rule of a definition is invalid (StaticEstimatedCostLimit).
STATIC_ESTIMATED_COST_LIMIT: Final = 10_000_000
#: The estimated cost above which all rules of a version of a definition are invalid (StaticEstimatedCRDCostLimit).
STATIC_ESTIMATED_CRD_COST_LIMIT: Final = 100_000_000
