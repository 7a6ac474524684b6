"""The public functions of a model: one definition each, compiled on first use."""
