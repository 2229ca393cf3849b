"""Plans: compile one, search for the fastest, compare fabrics, sweep message sizes."""
