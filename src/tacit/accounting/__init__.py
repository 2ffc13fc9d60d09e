"""Budgets, releases, the ledger and the certificate: public numbers only."""
