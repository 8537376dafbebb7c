"""Who next? Names become targets, health says who may be asked, a walk gives them one by one. Pure: no clock, no I/O."""
