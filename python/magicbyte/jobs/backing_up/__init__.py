"""The parts of `backup`: what a cluster tells about itself, the logs that are kept, and the manifest."""
