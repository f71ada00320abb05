"""Reading the checkout through git, without running anything that the checkout brings."""
