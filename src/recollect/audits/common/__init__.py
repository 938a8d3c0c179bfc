"""What all audits share: how a result is built, who is a known member, whether two sides are comparable, refusals."""
