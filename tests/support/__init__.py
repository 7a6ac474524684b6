"""What tests share: mechanisms, states, files, peers, back ends and how results are compared."""
