"""Who owns a model, by the policy and by CODEOWNERS, and which findings owners have accepted."""
