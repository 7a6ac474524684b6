"""What a simulation returns: tables, files, pictures, and whether it can be trusted."""
