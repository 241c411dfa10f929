package zkserver

import (
	"fmt"
	"math/rand"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/wire"
)

// TestFailedMultiIsRolledBack runs random multis, most of which fail at the
// last part, and compares the tree before and after each failed one.
func TestFailedMultiIsRolledBack(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Server, st *testClients) {
		a := st.joinFor("a", 0)
		random := rand.New(rand.NewSource(7))
		for range 300 {
			m := multiRequest()
			for range 1 + random.Intn(8) {
				m.Parts = append(m.Parts, randomPart(random))
			}
			if random.Intn(3) > 0 {
				m.Parts = append(m.Parts, multiPart(wire.OpCheck, numberRequest("/never", -1)))
			}
			before := s.Tree("/")
			d := a.mustCall(wire.OpMulti, m)
			var first wire.MultiHeader
			if first.Decode(&d); first.Op == wire.OpError {
				require.Equal(t, before, s.Tree("/"))
			}
			checkInvariants(t, s)
		}
	})
}

func randomPart(random *rand.Rand) wire.MultiPart {
	path := fmt.Sprintf("/n%d", random.Intn(4))
	if random.Intn(2) == 0 {
		path += fmt.Sprintf("/c%d", random.Intn(3))
	}
	switch random.Intn(5) {
	case 0:
		return multiPart(wire.OpDelete, numberRequest(path, -1))
	case 1:
		return multiPart(wire.OpSetData, setDataRequest(path, path, -1))
	case 2:
		return multiPart(wire.OpCreateTTL, createTTL(path, wire.FlagTTL, 1000))
	default:
		return multiPart(wire.OpCreate, createRequest(path, "", int32(random.Intn(5))))
	}
}
