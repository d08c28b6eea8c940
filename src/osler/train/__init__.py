"""Training: data, planners, thinkers and recognisers. What needs torch is the extra `train`."""
