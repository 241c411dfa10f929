// Package faults proves the foundation's promises on three real Apache ZooKeeper servers that are
// frozen, killed and cut off from each other: no two holders, nothing left behind, waiting survives.
// It has nothing but tests, all of which need real servers. They share one ensemble, which each leaves
// healed; "go test -run TestFaults/NAME" runs one of them.
//
// Time in them is real. A stalled machine may make a holder lose its lease early, which is safe and
// tolerated; nothing excuses a late loss.
package faults
