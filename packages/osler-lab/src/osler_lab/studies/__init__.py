"""What is measured of a configured system: evaluations, calibration, sensitivity, robustness."""
