"""Results of a simulation: tables, files, plots, and a report of their accuracy."""
