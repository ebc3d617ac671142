"""The public functions of the application: each opens its transactions and joins the steps. The doors call only these."""
