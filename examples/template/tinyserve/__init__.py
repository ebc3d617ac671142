"""A small serving engine with the manners of a large one."""
