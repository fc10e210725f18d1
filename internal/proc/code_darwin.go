package proc

// DropCode does nothing here: the system counts the program's own code to nobody.
func DropCode() error { return nil }
