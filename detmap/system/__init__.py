"""The process and its machine: threads, interrupts, forks, whole files, limits, saved states."""
