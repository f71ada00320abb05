"""Who owns a model: by the policy, and by CODEOWNERS."""
