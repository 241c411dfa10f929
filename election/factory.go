package election

import "github.com/lockstep-go/lockstep/framework"

// Factory makes elections on one client.
type Factory struct{ client *framework.Client }

// NewFactory returns a factory on client.
func NewFactory(client *framework.Client) *Factory { return &Factory{client} }

// Election returns an election at path; see New.
func (f *Factory) Election(path string, opts ...Option) *Election {
	return New(f.client, path, opts...)
}
