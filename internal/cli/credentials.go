package cli

import (
	"strings"

	"github.com/lockstep-go/lockstep/framework"
)

// PresentedCredentials says which credentials a client presents, as scheme:id. It leaves out
// secrets, and ids that may be secrets.
func PresentedCredentials(cfg framework.Config) string {
	var all []string
	for _, c := range cfg.Auth {
		id := c.Scheme
		if user, _, found := strings.Cut(string(c.Auth), ":"); found && c.Scheme == "digest" {
			id += ":" + user
		}
		all = append(all, id)
	}
	if cfg.TLS != nil && len(cfg.TLS.Certificates) > 0 {
		id := "x509"
		if leaf := cfg.TLS.Certificates[0].Leaf; leaf != nil {
			id += ":" + leaf.Subject.String()
		}
		all = append(all, id)
	}
	if len(all) == 0 {
		return "without credentials"
	}
	return "with the credentials " + strings.Join(all, " and ")
}

// presentedByEnvironment returns the beginning of a hint: the credentials that the command has
// presented. They come from the environment only.
func presentedByEnvironment() string {
	cfg, err := framework.ConfigFromEnv()
	if err != nil {
		return ""
	}
	return "lockstep connected " + PresentedCredentials(cfg) + ": "
}
