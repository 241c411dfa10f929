// Package doctor has the subcommand that examines the servers and what is stored on them.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/cli"
	"github.com/lockstep-go/lockstep/internal/fourletter"
	"github.com/lockstep-go/lockstep/internal/sharedreport"
	"github.com/lockstep-go/lockstep/internal/terminal"
	"github.com/lockstep-go/lockstep/internal/znode"
)

// doctorCommand is the subcommand that examines the servers and what is stored on them.
type doctorCommand struct {
	cli.ConnectionFlags
	strict bool
}

// Command is the subcommand of this package.
func Command(streams *cli.Streams) *cobra.Command {
	d := &doctorCommand{}
	cmd := &cobra.Command{
		Use:   "doctor [ROOT] [flags]",
		Short: "Examine the servers, the session and what is stored",
		Long: `Examine the servers one by one (role, version), the quorum, the session timeout that they grant,
round trips of reads and writes, the clocks, the permissions of these credentials, and the nodes
below a path (default /lockstep): nodes and sessions near their size limits, nodes in locks that
no session owns, nodes that other programs have written, and the ACLs of the root and of the
uppermost directories: whether everybody may harm a client that has credentials, and which
permissions this client lacks.

Each line is a check. A problem is printed with what to do, and makes the exit code 1. A warning is printed
with what to do, too; only with --strict it makes the exit code 1. There is one: everybody may harm the root of the
servers, as it is in each ensemble whose administrator has not changed that. The exit code is 69 if no session could be
opened. doctor creates and deletes one ephemeral node to examine permissions and clock, and writes nothing else.`,
		Example: `  lockstep doctor
  lockstep doctor /apps --zk zk1,zk2,zk3 --json
  until lockstep doctor >/dev/null; do sleep 1; done     until the servers have restarted`,
		Args: cobra.MaximumNArgs(1),
		RunE: cli.WithExitCodes(d.examine),
	}
	d.ConnectionFlags.AddConnectionFlags(streams, cmd)
	cmd.Flags().BoolVar(&d.strict, "strict", false, "end with 1 for a warning, too")
	return cmd
}

// diagnosis is the outcome of one check.
type diagnosis struct {
	Check   string `json:"check"`
	OK      bool   `json:"ok"`
	Warning bool   `json:"warning,omitempty"` // it is OK, and should be changed all the same
	Text    string `json:"text"`
	Advice  string `json:"advice,omitempty"` // what to do, if it is not OK or a warning
}

// diagnoses prints diagnoses, or gives them to take, and counts problems and warnings.
type diagnoses struct {
	streams   *cli.Streams
	json      bool
	take      func(check string, ok bool, text, advice string) // instead of printing, or nil
	wrong     int
	warnings  int
	refusedIn string // the directory in which a node could not be created and deleted, or ""

	directories []string // the uppermost ones that the walk has found
}

func (d *diagnoses) good(check, format string, args ...any) error {
	return d.print(diagnosis{Check: check, OK: true, Text: fmt.Sprintf(format, args...)})
}

func (d *diagnoses) bad(check, advice, format string, args ...any) error {
	d.wrong++
	return d.print(diagnosis{Check: check, Text: fmt.Sprintf(format, args...), Advice: advice})
}

func (d *diagnoses) warn(check, advice, format string, args ...any) error {
	d.warnings++
	return d.print(diagnosis{Check: check, OK: true, Warning: true, Text: fmt.Sprintf(format, args...), Advice: advice})
}

func (d *diagnoses) print(one diagnosis) error {
	if d.take != nil {
		d.take(one.Check, one.OK, one.Text, one.Advice)
		return nil
	}
	if d.json {
		return cli.PrintResult(d.streams.Out, true, one)
	}
	style := terminal.For(d.streams.Out)
	mark := style.Green("ok   ")
	switch {
	case one.Warning:
		mark = style.Yellow("warn ")
	case !one.OK:
		mark = style.Red("WRONG")
	}
	_, err := fmt.Fprintf(d.streams.Out, "%s %s %s\n", mark, style.Dim(fmt.Sprintf("%-11s", one.Check)),
		cli.InOneLine(one.Text))
	if one.Advice != "" && err == nil {
		_, err = fmt.Fprintf(d.streams.Out, "      %s %s\n", style.Yellow("->"), cli.InOneLine(one.Advice))
	}
	return err
}

func (d *doctorCommand) examine(cmd *cobra.Command, args []string) error {
	root, err := cli.RootArgument(args, "ROOT", defaultExamined)
	if err != nil {
		return err
	}
	if d.SessionTimeout == 0 && os.Getenv(framework.EnvSessionTimeout) == "" {
		// what commands that hold something ask for
		d.SessionTimeout = cli.DurationFlag(cli.WatchedSessionTimeout)
	}
	cfg, err := d.ClientConfig(cmd)
	if err != nil {
		return err
	}
	ctx, out := cmd.Context(), &diagnoses{streams: d.Streams, json: d.JSON}
	tick, err := out.examineServers(ctx, cfg, fourletter.Asker{TLS: cfg.TLS})
	if err != nil {
		return cli.EndBySignal(ctx, err)
	}
	client, err := d.ConnectClient(cmd, framework.WithLogger(d.PeopleLogger(cli.ShorterTimeout)))
	if err != nil {
		return cli.EndBySignal(ctx, err)
	}
	defer cli.CloseClient(d.Streams, client)
	if err := out.examineWith(ctx, client, root, tick); err != nil {
		return cli.EndBySignal(ctx, err)
	}
	if out.wrong > 0 || d.strict && out.warnings > 0 {
		return cli.ExitSilently(cli.ExitFound)
	}
	return nil
}

// examineWith examines what a client sees.
func (d *diagnoses) examineWith(ctx context.Context, client *framework.Client, root string, tick time.Duration) error {
	err := d.examineSession(ctx, client, tick)
	if err == nil {
		err = d.examineAccess(ctx, client)
	}
	if err == nil {
		err = d.examineTree(ctx, client, root)
	}
	if err == nil {
		err = d.examineACLs(ctx, client, root)
	}
	return err
}

// Examine examines the servers of a client, and what is at and below root, as the command does. It
// calls take with each diagnosis; one that is OK and has an advice is a warning.
func Examine(ctx context.Context, client *framework.Client, root string,
	take func(check string, ok bool, text, advice string)) error {
	d := &diagnoses{take: take}
	tick, err := d.examineServers(ctx, client.Config(), fourletter.OfClient(client))
	if err != nil {
		return err
	}
	return d.examineWith(ctx, client, root, tick)
}

// serverAnswer is what a server tells of itself.
type serverAnswer struct {
	fourletter.Server
	address  string
	tick     time.Duration // 0 if unknown
	failures int           // how often an error has stopped it since its start; 0 if unknown
	err      error
}

// askServers asks all servers at once: for what they tell by srvr, and by conf and mntr, which
// servers do not allow by default.
func askServers(ctx context.Context, asker fourletter.Asker, servers []string) []serverAnswer {
	answers := make([]serverAnswer, len(servers))
	var asking sync.WaitGroup
	for i, address := range servers {
		asking.Go(func() {
			a := &answers[i]
			a.address = address
			if a.Server, a.err = asker.Ask(ctx, address); a.err != nil {
				return
			}
			if text, err := asker.Send(ctx, address, "conf"); err == nil {
				if tick, err := time.ParseDuration(fourletter.Fields(text, "=")["tickTime"] + "ms"); err == nil {
					a.tick = tick
				}
			}
			if text, err := asker.Send(ctx, address, "mntr"); err == nil {
				a.failures, _ = strconv.Atoi(fourletter.Fields(text, "\t")["zk_unrecoverable_error_count"])
			}
		})
	}
	asking.Wait()
	return answers
}

// examineServers asks each server, and returns the tick if a server reports it.
func (d *diagnoses) examineServers(ctx context.Context, cfg framework.Config,
	asker fourletter.Asker) (tick time.Duration, err error) {
	roles, versions := map[string]int{}, []string{}
	var silent []string // those that do not report their roles
	reached := 0
	answers := askServers(ctx, asker, cfg.Servers)
	led := slices.ContainsFunc(answers, func(a serverAnswer) bool { return a.Mode == "leader" })
	for _, a := range answers {
		address := a.address
		switch {
		case ctx.Err() != nil:
			return 0, ctx.Err()
		case errors.Is(a.err, fourletter.ErrNotServing) && led:
			err = d.bad("server", "wait if it has just started; else its log says why: its disk is full, or it does not "+
				"reach the others", "%s: %v: another server leads, and it has not joined it", address, a.err)
		case errors.Is(a.err, fourletter.ErrNotServing):
			err = d.bad("server", "start more of the ensemble's servers, and look at this one's log",
				"%s: %v: it has no quorum", address, a.err)
		case a.Mode == "read-only":
			err = d.bad("server", "start more of the ensemble's servers",
				"%s: it serves reads only: it has no quorum; lockstep does not use it, since what it reads may be old", address)
		case errors.Is(a.err, fourletter.ErrHungUp):
			reached++
			silent = append(silent, address)
			err = d.bad("server", "close connections from this machine, or raise the server's maxClientCnxns, which "+
				"limits those of one address; its log tells the cause", "%s: %v", address, a.err)
		case a.err != nil:
			err = d.bad("server", "start it, open the network to it, or remove it from --zk or LOCKSTEP_SERVERS",
				"%v", framework.ServerError{Server: address, Err: a.err})
		case a.Mode == "":
			reached++
			silent = append(silent, address)
			err = d.good("server", "%s: it answers in %v and does not report its role (4lw.commands.whitelist "+
				"lacks srvr)", address, a.RoundTrip.Round(time.Microsecond))
		default:
			reached++
			roles[a.Mode]++
			if !slices.Contains(versions, a.Version) {
				versions = append(versions, a.Version)
			}
			tick = max(tick, a.tick)
			if a.failures > 0 {
				err = d.bad("server", "its log says which, such as \"No space left on device\": stop it, mend that, and "+
					"start it again", "%s: %s, but errors that it cannot recover from have stopped it since its start: %d",
					address, a.Mode, a.failures)
				break
			}
			err = d.good("server", "%s: %s, version %s, answers in %v, its requests took %s ms (min/avg/max)", address,
				a.Mode, a.Version, a.RoundTrip.Round(time.Microsecond), a.Latency)
		}
		if err != nil {
			return 0, err
		}
	}
	if len(versions) > 1 {
		if err := d.bad("version", "finish the upgrade of the ensemble", "the servers have different versions: %s",
			strings.Join(versions, ", ")); err != nil {
			return 0, err
		}
	}
	if advice := adviceOnObservers(roles["observer"], cfg); advice != "" {
		if err := d.good("observers", "%s", advice); err != nil {
			return 0, err
		}
	}
	return tick, d.judgeQuorum(len(cfg.Servers), reached, roles, silent)
}

// adviceOnObservers says which setting clients need if observers follow servers other than the
// leader: clients cannot find that out.
func adviceOnObservers(observers int, cfg framework.Config) string {
	if observers == 0 || cfg.ObserverMasters {
		return ""
	}
	return fmt.Sprintf("%d: if a server's zoo.cfg has observerMasterPort, set %s=true for every client; otherwise "+
		"leases are not safe there", observers, framework.EnvObserverMasters)
}

// judgeQuorum prints what the servers' roles mean for the quorum. A silent server, which does not
// report its role, may lead, follow or observe.
func (d *diagnoses) judgeQuorum(listed, reached int, roles map[string]int, silent []string) error {
	voters := roles["leader"] + roles["follower"] + len(silent) // at most
	switch {
	case roles["standalone"] > 0 && listed > 1:
		return d.bad("quorum", "list the servers of one ensemble only",
			"%d of the servers are standalone: they do not belong to one ensemble", roles["standalone"])
	case roles["standalone"] > 0:
		return d.good("quorum", "one standalone server: when it stops, no client is served")
	case len(roles) == 0:
		return nil // reported already, or unknown
	case roles["leader"] > 1:
		return d.bad("quorum", "list the servers of one ensemble only",
			"%d of the servers lead: they do not belong to one ensemble", roles["leader"])
	case roles["leader"] == 0 && len(silent) == 0 && reached == listed:
		return d.bad("quorum", "list all servers: a client connects only to servers that it knows",
			"none of the servers leads: some of the ensemble are not listed")
	case voters <= 2 && reached == listed:
		return d.bad("quorum", "list all servers of the ensemble; if these are all, run three: two serve no client "+
			"when one of them stops", "%d servers are listed", listed)
	case voters <= 2:
		return d.bad("quorum", "start the other servers again",
			"%d servers of the ensemble were reached: when one more stops, there may be no quorum", voters)
	}
	known := fmt.Sprintf("%d leader, %d followers, %d observers reached", roles["leader"], roles["follower"],
		roles["observer"])
	if len(silent) > 0 {
		known += "; the roles of these are not known: " + strings.Join(silent, ", ")
	}
	return d.good("quorum", "%s", known)
}

// examineSession judges the timeout and the round trips.
func (d *diagnoses) examineSession(ctx context.Context, client *framework.Client, tick time.Duration) error {
	session, err := client.Session(ctx)
	if err != nil {
		return err
	}
	asked, granted := client.Config().WithDefaults().SessionTimeout, session.Timeout()
	cfg := client.Config()
	cfg.SessionTimeout = granted
	survives := cfg.LongestInterruption().Round(100 * time.Millisecond)
	switch {
	case granted < asked:
		err = d.bad("timeout", "raise the servers' maxSessionTimeout or tickTime, or ask for less with "+
			"--session-timeout",
			"asked for %v, granted %v: holds survive interruptions of %v", asked, granted, survives)
	case tick > 0 && granted < 4*tick:
		err = d.bad("timeout", "ask for 4 ticks or more with --session-timeout",
			"%v is less than 4 of the servers' ticks of %v: sessions end when the servers elect a leader",
			granted, tick)
	default:
		err = d.good("timeout", "%v granted: holds survive interruptions of %v", granted, survives)
	}
	if err != nil {
		return err
	}
	var took []time.Duration
	for range 5 {
		began := time.Now()
		if _, err := session.Exists(ctx, "/"); err != nil && !errors.Is(err, framework.ErrNoNode) {
			return err
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	median := took[len(took)/2].Round(time.Microsecond)
	if median > slowRead {
		return d.bad("reads", "use nearer servers, and look at their load and garbage collection",
			"a read takes %v in the median", median)
	}
	return d.good("reads", "a read takes %v in the median, %v at most", median,
		took[len(took)-1].Round(time.Microsecond))
}

// defaultExamined is the path that doctor examines without a ROOT. It need not exist yet.
const defaultExamined = "/lockstep"

const (
	slowRead  = 100 * time.Millisecond
	slowWrite = 250 * time.Millisecond
	badClock  = time.Second // beyond what the writes took
)

// examineAccess creates an ephemeral node and deletes it, which needs permissions and shows the
// leader's clock.
func (d *diagnoses) examineAccess(ctx context.Context, client *framework.Client) error {
	dir := "/lockstep"
	_, err := client.Exists(ctx, dir)
	if errors.Is(err, framework.ErrNoNode) {
		dir = "/"
		_, err = client.Exists(ctx, dir)
	}
	node := znode.Join(dir, "doctor-"+uuid.NewString())
	began := time.Now()
	if err == nil {
		err = client.Create(ctx, node, nil, framework.Ephemeral)
	}
	took := time.Since(began)
	var stat framework.Stat
	if err == nil {
		stat, err = client.Exists(ctx, node)
	}
	if err == nil {
		err = client.Delete(ctx, node, framework.AnyVersion)
	}
	if errors.Is(err, framework.ErrNoAuth) {
		d.refusedIn = dir
		permitted := ""
		if access, err := cli.ReadAccess(ctx, client, dir); err == nil {
			permitted = "; its ACL has " + access.String()
		}
		return d.bad("access", "give credentials that have the permission in LOCKSTEP_AUTH_FILE (user:password), or "+
			"change the node's ACL", "no permission to create and delete below %s, %s%s", dir,
			sharedreport.Credentials(client.Config()), permitted)
	}
	if errors.Is(err, framework.ErrNoNode) {
		return d.bad("access", "create it, or use another --root", "the root %s does not exist", client.Config().Root)
	}
	if err != nil {
		return err
	}
	if err := d.good("access", "may create and delete below %s, %s", dir,
		sharedreport.Credentials(client.Config())); err != nil {
		return err
	}
	if took > slowWrite {
		err = d.bad("writes", "give the servers' transaction logs a disk of their own (dataLogDir)", "a write took %v",
			took.Round(time.Microsecond))
	} else {
		err = d.good("writes", "a write took %v", took.Round(time.Microsecond))
	}
	if err != nil {
		return err
	}
	switch ahead := began.Add(took / 2).Sub(stat.Ctime); {
	case ahead.Abs() < badClock+took:
		return d.good("clock", "the same as the ensemble's, within %v",
			(time.Second + took).Round(100*time.Millisecond))
	case ahead > 0:
		return d.bad("clock", "synchronize this machine's clock and the servers' with NTP",
			"%v ahead of the ensemble's", ahead.Round(100*time.Millisecond))
	default:
		return d.bad("clock", "synchronize this machine's clock and the servers' with NTP", "%v behind the ensemble's",
			-ahead.Round(100*time.Millisecond))
	}
}
