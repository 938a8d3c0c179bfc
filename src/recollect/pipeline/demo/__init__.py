"""The demonstration: synthetic people, small models of which it is known what they learnt, and all five audits."""
