"""The parts of an audit for misrouted batches: headers, copies of batches, and what speaks for a topic."""
