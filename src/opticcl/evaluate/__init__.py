"""What a network costs and draws, what its light allows, and how long training takes on it."""
