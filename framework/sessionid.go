package framework

import (
	"fmt"
	"strconv"
)

// SessionID is the servers' number of a session. Its text is hexadecimal, as in ZooKeeper's own
// tools, so that JSON readers that round large numbers keep it.
type SessionID int64

func (s SessionID) String() string { return fmt.Sprintf("%#x", uint64(s)) }

// MarshalText returns String, or nothing for 0, which is no session.
func (s SessionID) MarshalText() ([]byte, error) {
	if s == 0 {
		return nil, nil
	}
	return []byte(s.String()), nil
}

// UnmarshalText parses the text of MarshalText.
func (s *SessionID) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*s = 0
		return nil
	}
	n, err := strconv.ParseUint(string(text), 0, 64)
	if err != nil {
		return fmt.Errorf("session: %w", err)
	}
	*s = SessionID(n)
	return nil
}
