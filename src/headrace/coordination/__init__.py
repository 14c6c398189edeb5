"""What all coordinators share: a decision's effects, its records, its timers; sans-IO."""
