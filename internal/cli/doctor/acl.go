package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/cli"
	"github.com/lockstep-go/lockstep/internal/sharedreport"
)

// neededPerms are the permissions on a directory that recipes need to work in it.
const neededPerms = framework.PermRead | framework.PermCreate | framework.PermDelete

// harmfulPerms are the permissions with which everybody can delete or change what a client has
// created, or lock the client out.
const harmfulPerms = framework.PermWrite | framework.PermDelete | framework.PermAdmin

// maxACLs is of how many directories the ACL is read.
const maxACLs = 30

// accessFindings are directories by what is wrong with their ACLs.
type accessFindings struct {
	top      []cli.NodeAccess // the servers' root if everybody may do harm there, as it is by default
	open     []cli.NodeAccess // everybody may do harm, in spite of the client's credentials
	lacking  []cli.NodeAccess // the client lacks permissions, and no credentials have them
	withheld []cli.NodeAccess // the client lacks permissions that credentials have which it does not present
}

// examineACLs judges the ACLs of the client's root, of a path and of directories below it.
func (d *diagnoses) examineACLs(ctx context.Context, client *framework.Client, root string) error {
	cfg := client.Config()
	var f accessFindings
	read := 0
	for i, path := range d.directoriesToJudge(root) {
		access, err := cli.ReadAccess(ctx, client, path)
		switch {
		case errors.Is(err, framework.ErrNoNode), errors.Is(err, framework.ErrNoAuth):
			// the walk has reported a directory that may not be read; the root need not be readable
			continue
		case err != nil:
			return err
		}
		read++
		switch harmful := len(cfg.Auth) > 0 && access.Everyone&harmfulPerms != 0; {
		case harmful && path == "/" && cfg.Root == "/":
			f.top = append(f.top, access)
		case harmful:
			f.open = append(f.open, access)
		}
		if i == 0 || path == d.refusedIn || access.Lacks(neededPerms) == 0 {
			// a client needs these permissions in its own directories, and not in its root
			continue
		}
		if len(access.Unpresented(access.Lacks(neededPerms))) > 0 {
			f.withheld = append(f.withheld, access)
		} else {
			f.lacking = append(f.lacking, access)
		}
	}
	if err := d.printACLs(cfg, f); err != nil || read == 0 {
		return err
	}
	if len(f.open)+len(f.lacking)+len(f.withheld) > 0 {
		return nil
	}
	which := "the ACL of one directory permits"
	if read > 1 {
		which = fmt.Sprintf("the ACLs of %d directories permit", read)
	}
	return d.good("acl", "%s what recipes need, %s", which, sharedreport.Credentials(cfg))
}

// directoriesToJudge are the client's root, the path that is examined, and the uppermost
// directories below it.
func (d *diagnoses) directoriesToJudge(root string) []string {
	all := []string{"/"}
	for _, path := range append([]string{root}, d.directories...) {
		system := path == "/zookeeper" || strings.HasPrefix(path, "/zookeeper/") // the servers' own
		if path != all[len(all)-1] && path != "/" && !system && len(all) < maxACLs {
			all = append(all, path)
		}
	}
	return all
}

// printACLs prints one diagnosis for each kind of problem, about the first directory that has it.
func (d *diagnoses) printACLs(cfg framework.Config, f accessFindings) (err error) {
	const change = "change its ACL with setAcl of ZooKeeper's zkCli.sh"
	const open = "%s%s: everybody may %s; its ACL has %s"
	if len(f.top) > 0 {
		one := f.top[0]
		err = d.warn("acl", change+", or give all clients a --root of their own that was made with an ACL", open,
			one.Path, "", harm(one.Everyone), one)
	}
	if len(f.open) > 0 && err == nil {
		one := f.open[0]
		err = d.bad("acl", change, open, one.Path, andMore(f.open), harm(one.Everyone), one)
	}
	if len(f.withheld) > 0 && err == nil {
		one := f.withheld[0]
		missing := one.Lacks(neededPerms)
		names := strings.Join(one.Unpresented(missing), " or ")
		err = d.bad("acl", "present "+names+
			" (a digest: user:password in LOCKSTEP_AUTH_FILE, perhaps with another password), or "+change,
			"%s%s: no permission to %s in it, %s; its ACL has %s",
			one.Path, andMore(f.withheld), missing, sharedreport.Credentials(cfg), one)
	}
	if len(f.lacking) > 0 && err == nil {
		one := f.lacking[0]
		err = d.bad("acl", change+", if this client is to do more than read",
			"%s%s: nobody may %s in it; its ACL has %s",
			one.Path, andMore(f.lacking), one.Lacks(neededPerms), one)
	}
	return err
}

// harm says what everybody may do to a directory.
func harm(perms framework.Perms) string {
	var all []string
	for _, one := range []struct {
		perm framework.Perms
		text string
	}{
		{framework.PermDelete, "delete the nodes in it"}, {framework.PermWrite, "write its data"},
		{framework.PermAdmin, "change its ACL"},
	} {
		if perms&one.perm != 0 {
			all = append(all, one.text)
		}
	}
	return strings.Join(all, ", ")
}

// andMore counts the further directories.
func andMore(all []cli.NodeAccess) string {
	switch len(all) {
	case 1:
		return ""
	case 2:
		return " and another directory"
	}
	return fmt.Sprintf(" and %d more directories", len(all)-1)
}
