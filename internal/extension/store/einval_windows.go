package store

func isEINVAL(error) bool { return false }
