// Package znode builds and reads znode paths.
package znode

import "strings"

// ProtectedPrefix begins the name of every protected node. A UUID and a dash follow, as in the
// names that Curator writes and reads. The three together are the protection.
const ProtectedPrefix = "_c_"

// Join joins a directory and a name.
func Join(dir, name string) string {
	if dir == "/" {
		return "/" + name
	}
	return dir + "/" + name
}

// Split splits a path into its directory and its last name.
func Split(path string) (dir, name string) {
	i := strings.LastIndexByte(path, '/')
	if i <= 0 {
		return "/", path[i+1:]
	}
	return path[:i], path[i+1:]
}
