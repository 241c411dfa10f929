// Package idle tests that clients which only wait or are present cost the servers nothing but pings.
package idle
