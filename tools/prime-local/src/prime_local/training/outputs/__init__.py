"""What hosted runs show. All of it is made up, of their record and the time alone."""
