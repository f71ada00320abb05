"""Which columns of later models a change reaches: through blocks, and from model to model."""
