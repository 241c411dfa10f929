package ensemble

import (
	"context"
	"errors"
	"fmt"
)

// Ensemble is a running group of servers, numbered from 0. Its methods may be called
// at any time before Close, from several goroutines.
type Ensemble struct {
	config   Config
	layout   *layout
	links    *links // nil without Config.Links
	launcher *launcher
	servers  []*server
}

// startTries is how often Start tries if another process takes one of the ports.
const startTries = 4

// Start starts the servers that config describes, and returns when all of them serve and
// one leads. It returns [ErrNotInstalled] if Java or ZooKeeper is missing, and
// [ErrNotServing], with the end of the servers' logs, if ctx or config.Patience is
// over first. The caller must close the ensemble; the end of ctx does not.
func Start(ctx context.Context, config Config) (*Ensemble, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	inst, err := findInstall()
	if err != nil {
		return nil, fmt.Errorf("ensemble: %w", err)
	}
	for try := 1; ; try++ {
		e, err := startOnce(ctx, config.withDefaults(), inst)
		if err == nil || try == startTries || !errors.Is(err, errPortTaken) {
			return e, err
		}
	}
}

// errPortTaken is returned if another process uses one of a server's ports.
var errPortTaken = errors.New("a port was taken meanwhile")

func startOnce(ctx context.Context, c Config, inst install) (*Ensemble, error) {
	e := &Ensemble{config: c, launcher: newLauncher()}
	err := e.prepare(inst)
	if err == nil {
		err = e.mountDisks()
	}
	for i := 0; err == nil && i < len(e.servers); i++ {
		err = e.servers[i].start()
	}
	if err == nil {
		err = e.Await(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

func (e *Ensemble) prepare(inst install) (err error) {
	if e.layout, err = newLayout(e.config.total()); err != nil {
		return err
	}
	if e.config.Links {
		if e.links, err = newLinks(e.layout.quorum, e.layout.election); err != nil {
			return err
		}
		if e.config.ObserverMasters {
			if err := e.links.addMasters(e.layout.master[:e.config.Servers], e.config.Observers); err != nil {
				return err
			}
		}
	}
	for i := range e.config.total() {
		if err := e.layout.write(i, e.config, e.links); err != nil {
			return err
		}
		e.servers = append(e.servers, &server{
			java:     inst.java,
			args:     e.layout.javaArgs(i, e.config, inst.classpath),
			addr:     loopback(e.layout.client[i]),
			logPath:  e.layout.logPath(i),
			launcher: e.launcher,
		})
	}
	return nil
}

// Close stops the servers and removes their data. When it returns, no process and no file of
// the ensemble exists. It may be called twice, but not concurrently with other methods.
func (e *Ensemble) Close() error {
	var errs []error
	for _, s := range e.servers {
		errs = append(errs, s.kill())
	}
	if e.links != nil {
		e.links.close()
	}
	if e.launcher != nil {
		e.launcher.close()
		e.launcher = nil
	}
	if e.layout != nil {
		errs = append(errs, e.layout.remove())
	}
	return errors.Join(errs...)
}
