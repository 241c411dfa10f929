// Package faults tests guarantees of the packages framework, locks and scheduler on real Apache
// ZooKeeper servers that are frozen, killed and cut off from each other: there are not two holders
// at a time, no node remains, and waiters keep waiting. It has only tests, and all need real
// servers. Each test injects one fault at a time; package chaos injects many.
//
// The subtests of TestFaults share one ensemble, and each heals it at its end; "go test -run
// TestFaults/NAME" runs one of them. TestCronJobsRunOnceUnderKills uses the ensemble of "make
// test". The other tests start servers of their own: they test observers, the loss of the quorum,
// watchdogs, TLS, and settings that the other tests cannot use.
//
// To add a fault of servers or of links between them, add an entry to serverFaults, to masterFaults
// if it is one of an observer behind a follower, or to linkFaults if it is one of the link between
// a client and its server. The placements of a fault say which holders it affects. A holder that
// must lose its lock has mustBeLost. Where possible, set withNaive: then a naive holder, which
// trusts its client library, must overlap with the next holder, which shows that the fault is
// effective.
//
// The tests run in real time. If the machine stalls, a holder may lose its lease early, which is
// safe and accepted. A loss that comes too late is a failure.
package faults
