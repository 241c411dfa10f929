package demo

import (
	"errors"
	"fmt"
)

// CheckTokensRise returns an error for each token that is not higher than the one before. Each
// element of grants has a token.
func CheckTokensRise[G any](grants []G, token func(G) int64) error {
	var errs []error
	for i := 1; i < len(grants); i++ {
		if last, next := token(grants[i-1]), token(grants[i]); next <= last {
			errs = append(errs, fmt.Errorf("token %d follows %d: it did not rise", next, last))
		}
	}
	return errors.Join(errs...)
}
