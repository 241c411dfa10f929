// Package security tests what SECURITY.md says of credentials: other clients have no access to the
// nodes of a client with credentials, and no output shows credentials. It contains tests only. To
// test another recipe, add it to recipeUses.
package security
