"""Results: findings with interval, counts and method; their JSON Schema; run folders."""
