"""The tables of docs/results/ as pages show them."""
