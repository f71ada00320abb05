"""What SQL statements do: read, judged by whom they touch, and refused where that is not theirs.

`text` is pure: text in, effects out. `judging` weighs effects. `plan_statements` looks at a plan:
`rendered`, `parts` and `sites` are its adapter to SQLMesh. `raw` looks at files that nobody has
loaded. This page imports none of them, because the last must not wait for the others.
"""
