// Package unused finds nodes that no client uses any more, and deletes them.
//
// It recognizes such nodes by the layouts of the recipes, and finds no others. An empty node of
// unknown purpose stays: it may be a flag, or count the numbers of sequential nodes (ids.MakeName),
// and servers do not show which nodes are containers.
// docs/adr/0088-only-what-a-layout-shows-to-be-unused-is-removed.md lists the nodes that are
// removed and those that are kept.
//
// A directory with an ACL of its own, one that differs from that of the directory above, stays too:
// somebody has made it so that only some clients may use it.
//
// Guarantee: the servers apply a deletion only if the nodes have the versions that Find has seen,
// and no children that it has not seen. Of a queue whose removal was begun, they delete what Find
// has seen while the mark of the removal is there. The recipes create the deleted nodes again when
// they need them. No fencing token, number or progress is lost.
package unused
