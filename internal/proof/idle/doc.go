// Package idle tests that clients which only wait or are present cost the servers nothing but
// pings. To test another way to wait, add it to roles.
package idle
