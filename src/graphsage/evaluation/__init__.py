"""How good embeddings and predictions are: F1 and the paper's logistic probe."""
