"""How the model's layers run fast: a strategy for each type of aggregator, held to the plain layer by one contract."""
