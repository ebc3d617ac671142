"""`firstbad run`: a bisection in any git checkout, with neither a service nor a database."""
