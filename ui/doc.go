// Package ui is a web page on which an operator looks at a cluster's locks, elections, jobs,
// queues, barriers, workflows, members, services and configuration, live, with what is wrong first.
// It is an http.Handler for a program's own server, and "lockstep ui" serves it by itself.
//
//	page, err := ui.New(client, ui.WithRoot("/apps"))
//	…
//	defer page.Close()
//	mux.Handle("/lockstep/", page)
//
// Guarantee: one hub reads the cluster for all open pages, so the number of pages does not change
// the number of requests to ZooKeeper; it reads nothing while no page is open. Pages only read,
// unless WithActions or WithAuthorize permits actions. Before an action, the handler compares the
// present token, state or UUID with the one that the page has shown, and refuses the action if they
// differ.
//
// Not guaranteed: that a page shows one moment; or that a job, a queue or a run does not change
// between that comparison and the action. The servers know only when a contender joined the line,
// so ages are counted from there. A page remembers curves, former terms and changes only from its
// own scans, and says since when.
//
// # Security
//
// A page runs no script and no style but its own, loads nothing from elsewhere and cannot be
// framed. It escapes names that others have written. Without WithHosts it answers only to IP
// addresses and localhost, so that no foreign name can be pointed at it. Actions are POST requests
// that come from a page of the same origin. WithAuthorize decides on each request. Without it, each
// visitor sees all that the client may read: put a proxy that authenticates users before a handler
// that other machines can reach.
package ui
