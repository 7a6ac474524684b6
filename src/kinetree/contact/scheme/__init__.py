"""What both ways to take a step with contact share: traced inertias, and the rows of joints."""
