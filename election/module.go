package election

import (
	"go.uber.org/fx"

	"github.com/lockstep-go/lockstep/framework"
)

// Module provides a *Factory, which makes elections on the application's client. Terms end with the
// client at the latest: whatever takes the factory is stopped before the client is closed.
var Module = fx.Module("lockstep.election", fx.Provide(NewFactory))

// Factory makes elections on one client.
type Factory struct{ client *framework.Client }

// NewFactory returns a factory on client.
func NewFactory(client *framework.Client) *Factory { return &Factory{client} }

// Election returns an election at path; see New.
func (f *Factory) Election(path string, opts ...Option) *Election {
	return New(f.client, path, opts...)
}
