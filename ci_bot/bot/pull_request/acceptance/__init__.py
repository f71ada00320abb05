"""An owner accepts a finding on a model."""
