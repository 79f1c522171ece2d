"""Operating system and process: threads, interrupts, forks, atomic files, limits, saved states."""
