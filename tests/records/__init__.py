"""Golden records: what commands answer and what plans list, recorded before a redesign; see docs/extending/tests.md."""
