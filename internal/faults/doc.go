// Package faults proves framework's and locks' guarantees on three real Apache ZooKeeper servers that are frozen, killed and cut off
// from each other: never two holders, no node left behind, waiters keep waiting. It has only tests, and all need real servers. The
// tests share one ensemble, and each heals it at its end; "go test -run TestFaults/NAME" runs one of them.
//
// The tests run in real time. On a stalled machine a holder may lose its lease early, which is safe and accepted; a late loss always
// fails.
package faults
