//go:build linux

// Compare measures Lockstep and other libraries on real servers, by turns: in each turn, each piece
// of work is done by one library after the other, on servers that run all the while. It prints the
// median and the range of each figure, and of its ratio to Lockstep's in the same turn.
//
//	make compare [ONLY=regexp] [TURNS=n] [JSON=1]
//
// See works and jobs for the work and the libraries. Each measurement is a process of its own: this
// program with -measure, java/Compare.java, or python/compare.py, which all print one line of JSON.
//
// With -holders it shows instead for how long two clients of a library believe to hold one lock
// when the holder's server is cut off, the holder stands still, a primary is killed or a clock is
// set:
//
//	make compare-holders [ONLY=regexp] [TURNS=n] [FROZEN=1m]
//
// It needs Linux, root for the networks of etcd's servers, and what scripts/install-compare
// installs. Without ONLY, both write docs/compare*.json, the charts, and the tables of the pages in
// docs.
//
// To add a library, add a connection to measurement.connect, and rows to jobs and trials. To add
// work, write a function in measurements, and add it to works and jobs.
package main
