"""What a model costs, how well its equations are conditioned, and what it is equivalent to."""
