//go:build !linux

package sandbox

func runVictim(string) int { return 1 }

func runNested(string) int { return 1 }
