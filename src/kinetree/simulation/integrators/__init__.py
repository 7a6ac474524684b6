"""Steps on the configuration manifold, one file for each family of methods."""
