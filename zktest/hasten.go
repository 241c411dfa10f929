package zktest

// Reap removes the containers that are empty, and have had children, and the TTL nodes that are overdue:
// what happens each WithContainerInterval, at a moment of the test's choice.
func (s *Server) Reap() { s.core.Reap() }

// Number makes next the number of the next child that is created below the node at path, as if so many had
// been created before. After 2147483647 comes -2147483648: what takes years happens in a test. It
// returns an error when there is no such node.
func (s *Server) Number(path string, next int32) error { return s.core.Number(path, next) }
