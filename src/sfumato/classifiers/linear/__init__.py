"""Linear models: noise on the objective, the coefficients or a polynomial."""
