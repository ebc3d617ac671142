"""What is known of a bisection, in the forms in which it is passed on."""
