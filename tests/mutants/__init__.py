"""Small changes to the code that each lose some privacy, and the tests that must notice.

    python -m tests.mutants                 # all of them, half an hour; --quick for a sample, or names
    python -m tests.mutants --list          # what each one loses

A mutant replaces one piece of text that occurs exactly once. It is applied to a copy of the project; the working tree is
never touched, so several runs may go on at once.
"""
