"""One algorithm per module; functions are the quantities it computes."""
