//go:build !linux

package conformance

// memory is what a process keeps for itself, in bytes; zero where that cannot be read.
func memory(int) int64 { return 0 }

// children lists the direct children of a process; nil where that cannot be read.
func children(int) []int { return nil }
