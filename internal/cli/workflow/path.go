package workflow

import (
	"context"
	"errors"
	"strings"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/cli"
	"github.com/lockstep-go/lockstep/internal/moduleonly"
	"github.com/lockstep-go/lockstep/internal/znode"
	"github.com/lockstep-go/lockstep/workflow"
)

// DefaultWorkflows is the path of the workflows whose runs are named by their ids alone, as in
// workflowfx.
const DefaultWorkflows = "/lockstep/workflows"

// A run's path is that of its workflows and the run's id, such as /orders/order-42.

// parseRun returns the path of the workflows, and the id, of the run that an ID or a path means.
func parseRun(name string) (path, id string, err error) {
	if !strings.HasPrefix(name, "/") {
		return DefaultWorkflows, name, nil
	}
	path, id = znode.Split(name)
	if err := framework.ValidatePath(name); err != nil || path == "/" {
		return "", "", cli.UsageError(
			"the run %q cannot be used: give the path of its workflows and its ID, such as /orders/order-42", name)
	}
	return path, id, nil
}

// NameOf is the argument that means a run.
func NameOf(run workflow.Report) string { return nameOfRun(run.Path, run.ID) }

// nameOfRun is the argument that means a run: its id, or its path.
func nameOfRun(path, id string) string {
	if path == DefaultWorkflows {
		return id
	}
	return znode.Join(path, id)
}

// findWorkflows reports whether a path is that of a run, and else returns the paths of the
// workflows at it or below it, and the error of what cannot be read.
func findWorkflows(ctx context.Context, client *framework.Client,
	path string) (isRun bool, paths []string, unread error) {
	dir, _ := znode.Split(path)
	for _, at := range []string{path, dir} {
		children, _, err := client.Children(ctx, at)
		switch {
		case cli.IgnoreMissing(err) != nil:
			return false, nil, err
		case err == nil && moduleonly.HasWorkflows(children) && at == path:
			return false, []string{path}, nil
		case err == nil && moduleonly.HasWorkflows(children):
			return true, nil, nil
		}
	}
	var errs []error
	for found, err := range workflow.Find(ctx, client, path) {
		if err != nil {
			errs = append(errs, err)
		} else {
			paths = append(paths, found)
		}
	}
	return false, paths, errors.Join(errs...)
}
