"""Contact in simulations: what ``simulate(contact=...)`` takes, and what takes the steps."""
