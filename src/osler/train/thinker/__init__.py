"""KAG-Thinker's training data: trajectories of a teacher, filtered and inspected (App. 9, 10)."""
