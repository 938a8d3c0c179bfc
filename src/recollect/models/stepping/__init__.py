"""Models queried token by token: the tree of continuations, and how each kind of model continues from a node."""
