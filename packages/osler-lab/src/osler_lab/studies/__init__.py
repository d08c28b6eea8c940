"""Studies of a configured system: evaluations, calibration, sensitivity, robustness."""
