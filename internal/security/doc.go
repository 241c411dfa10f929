// Package security proves what SECURITY.md says of credentials: what a client with credentials creates is closed to
// others, and credentials are not shown. It contains tests only.
package security
