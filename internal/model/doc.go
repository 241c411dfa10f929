// Package model holds models of the rules that Lockstep's safety rests on, for the model checker Spin. Its test searches all states of
// each variant and compares the verdict with the expected one. A variant without one part of a rule must be found to violate it: otherwise the
// model would prove nothing.
//
//   - lease.pml: what a client may count as a proof of life of its session, on a server that follows the leader
//   - observer.pml: the same on an observer that gets its packets from a follower
//   - line.pml: the waiting line: one holder, in order, and no waiter that is never woken
//
// "make model" searches all variants. "go test" searches the small ones, where Spin and a C compiler are installed.
//
// A verdict is for the rule, not for the code. Each model says what it leaves out.
package model
