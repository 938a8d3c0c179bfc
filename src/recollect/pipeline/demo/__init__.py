"""The demonstration: synthetic people, small models with known training sets, and all five audits."""
