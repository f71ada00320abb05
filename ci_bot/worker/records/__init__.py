"""What is kept in the state database beside SQLMesh's own: ledger, lease, ownership."""
