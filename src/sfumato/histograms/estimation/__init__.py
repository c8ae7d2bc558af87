"""What several histogram mechanisms share: clustering, priors, measurements and intervals."""
