"""What this team asks of its models beyond SQLMesh's own rules."""

import typing as t

from sqlmesh.core.linter.rule import Rule, RuleViolation
from sqlmesh.core.model import Model


class NoFloatMoney(Rule):
    """Amounts of money are decimals."""

    def check_model(self, model: Model) -> t.Optional[RuleViolation]:
        columns = model.columns_to_types or {}
        wrong = [name for name, kind in columns.items() if name in ("amount", "price", "fee") and kind.is_type("double", "float")]
        return self.violation(f"Money as a float: {', '.join(wrong)}") if wrong else None
