// Package ui is a web page on which an operator looks at a cluster's locks, elections, jobs, queues,
// barriers and workflows, live, with what is wrong first. It is an http.Handler for a program's own
// server, and "lockstep ui" serves it by itself.
//
//	page, err := ui.New(client, ui.WithRoot("/apps"))
//	…
//	defer page.Close()
//	mux.Handle("/lockstep/", page)
//
// Guarantee: one hub reads the cluster for all open pages, so the number of pages does not change the
// number of requests to ZooKeeper; it reads nothing while no page is open. Pages only read, unless
// WithActions permits actions. An action happens only to what its page has shown: if that has changed
// meanwhile, the action is refused and the page shows what is there now.
//
// Not guaranteed: that what is shown is of one moment. Ages are counted from when a contender joined
// the line, which is all that the servers know. Curves, former terms and changes are what the page has
// seen while it was open, and it says since when.
//
// # Security
//
// A page runs no script and no style but its own, loads nothing from elsewhere and cannot be framed.
// It escapes names that others have written. Without WithHosts it answers only to IP addresses and
// localhost, so that no foreign name can be pointed at it. Actions are POST requests that come from a
// page of the same origin. WithAuthorize decides on each request. Without it, whoever reaches the
// handler sees all that the client may read: serve it beyond the own machine only behind something
// that knows its users.
package ui
