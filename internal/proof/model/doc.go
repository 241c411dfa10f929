// Package model has models of the rules on which Lockstep's safety depends, for the model checker
// Spin. Its test searches all states of each variant of a model and compares the verdict with the
// expected one. In a variant that leaves out one part of a rule, the search must find a violation:
// this shows that the model can find one.
//
//   - lease.pml: what a client may count as a proof of life of its session, on a server that
//     follows the leader
//   - observer.pml: the same on an observer that gets its packets from a follower
//   - line.pml: the waiting line: one holder, in order, and every waiter is woken
//
// "make model" searches all variants. "go test" searches the small ones, if Spin and a C compiler
// are installed. To add a variant, add an entry to variants.
//
// A verdict is about the rule, not about the code. Each model says what it leaves out.
package model
