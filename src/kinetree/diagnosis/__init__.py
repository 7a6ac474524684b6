"""Diagnosis of models: operation counts, conditioning, equivalent models."""
