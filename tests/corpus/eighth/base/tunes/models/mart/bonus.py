import json
import typing as t
from pathlib import Path

import pandas as pd
from sqlmesh import ExecutionContext, model
from sqlmesh.core.model.kind import ModelKindName

BONUS = "data/bonus"


@model(
    "mart.bonus",
    kind=dict(name=ModelKindName.FULL),
    columns={"label_id": "string", "year": "string", "factor": "double"},
    owner="finance",
    grain=["label_id", "year"],
    audits=[("not_null", {"columns": ["label_id"]})],
)
def execute(context: ExecutionContext, start, end, execution_time, **kwargs: t.Any) -> pd.DataFrame:
    rows = []
    for path in sorted(Path(BONUS).glob("*.json")):
        for label, factor in json.loads(path.read_text()).items():
            rows.append((label, path.stem, factor))
    return pd.DataFrame(rows, columns=["label_id", "year", "factor"])
