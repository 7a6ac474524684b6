"""Exchange of models and states with other libraries, one module each."""
