"""One file per command, named after it. Each holds ``command``; heavy imports stand inside its functions."""
