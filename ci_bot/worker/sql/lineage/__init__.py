"""Which columns of later models a change reaches: through queries, and from model to model."""
