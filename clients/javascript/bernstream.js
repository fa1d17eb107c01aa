// The module that evaluates synopses is not built in yet.
