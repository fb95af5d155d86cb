"""What a job will cost before it is run: counted work, divided by rates that were measured on this machine."""
