"""Accounts: passwords, sessions, tokens, second factor, invitations, sign-in by OpenID Connect."""
