"""The person whose budget it is: who they are here, what they see, what they choose; and how a custodian brings them."""
