package workflow

import "github.com/lockstep-go/lockstep/framework"

// Factory makes ledgers on one client.
type Factory struct{ client *framework.Client }

// NewFactory returns a factory on client.
func NewFactory(client *framework.Client) *Factory { return &Factory{client} }

// Ledger returns the ledger at path; see NewLedger.
func (f *Factory) Ledger(path string) *Ledger { return NewLedger(f.client, path) }
