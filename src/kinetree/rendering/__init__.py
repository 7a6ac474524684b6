"""Pictures of surfaces in compiled code: colour, depth and what is seen."""
