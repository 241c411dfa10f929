package cli

import (
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/sharedreport"
)

// presentedByEnvironment returns the beginning of a hint: the credentials that the command has
// presented. They come from the environment only.
func presentedByEnvironment() string {
	cfg, err := framework.ConfigFromEnv()
	if err != nil {
		return ""
	}
	return "lockstep connected " + sharedreport.Credentials(cfg) + ": "
}
