"""What this team asks of its models beyond SQLMesh's own rules."""

import typing as t

from sqlmesh.core.linter.rule import Rule, RuleViolation
from sqlmesh.core.model import Model


class MoneyIsDecimal(Rule):
    """Amounts of money are decimals."""

    def check_model(self, model: Model) -> t.Optional[RuleViolation]:
        columns = model.columns_to_types or {}
        wrong = [n for n, kind in columns.items() if n in ("amount", "price") and kind.is_type("double", "float")]
        return self.violation(f"{', '.join(wrong)}: no decimal") if wrong else None
