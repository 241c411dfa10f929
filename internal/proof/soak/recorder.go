package main

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/lockstep-go/lockstep/internal/proof/ensemble"
)

// The measures of a process or a server.
const (
	residentMemory  = "resident memory"
	anonymousMemory = "anonymous memory"
	liveHeap        = "live heap"
	goroutines      = "goroutines"
	openDescriptors = "descriptors"
	processes       = "processes"
	itemsDone       = "items done"
	workersKilled   = "workers killed"
	processorTime   = "processor time"
)

// serverCounters are the counters that are read from each server's mntr, and the names of their
// measures. All servers have the same nodes. The watches and connections are those of a server's
// own clients, which move between servers, so they are added up.
var serverCounters = []struct {
	name, measure string
	added         bool
}{
	{"zk_znode_count", "znodes", false},
	{"zk_ephemerals_count", "ephemeral nodes", false},
	{"zk_approximate_data_size", "data", false},
	{"zk_watch_count", "watches", true},
	{"zk_num_alive_connections", "connections", true},
}

// event is an event of the pipeline's processes.
type event struct {
	Kind       string `json:"kind"`
	Worker     string `json:"worker"`
	Process    int    `json:"process"`
	Goroutines uint64 `json:"goroutines"`
	Heap       uint64 `json:"heap"`
}

// recorder takes samples.
type recorder struct {
	o       options
	addrs   []string // the servers'
	parent  int      // the pipeline's own process
	series  seriesByName
	alive   map[string]event // the last statistics of each process
	done    int              // items
	killed  int              // workers
	events  *os.File
	lines   *bufio.Reader
	partial string // the beginning of a line that is not complete yet
	csv     *os.File
	rows    *csv.Writer
}

func newRecorder(o options, addrs []string, parent int) (*recorder, error) {
	events, err := os.OpenFile(o.out+".events", os.O_RDONLY|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	table, err := os.Create(o.out + ".csv")
	if err != nil {
		return nil, errors.Join(err, events.Close())
	}
	r := &recorder{
		o: o, addrs: addrs, parent: parent, series: seriesByName{}, alive: map[string]event{},
		events: events, lines: bufio.NewReader(events), csv: table, rows: csv.NewWriter(table),
	}
	return r, r.rows.Write([]string{"seconds", "subject", "measure", "value"})
}

func (r *recorder) close() error {
	r.rows.Flush()
	return errors.Join(r.rows.Error(), r.csv.Close(), r.events.Close())
}

// sample takes one sample of all measures.
func (r *recorder) sample(at time.Duration) error {
	if err := r.readEvents(); err != nil {
		return err
	}
	s := sample{r, at}
	for name, e := range r.alive {
		s.process(name, e.Process)
		s.add(name, goroutines, float64(e.Goroutines))
		s.add(name, liveHeap, float64(e.Heap))
	}
	for number, pid := range servers() {
		s.process("server-"+number, pid)
		if spent, err := processor(pid); err == nil {
			s.add("server-"+number, processorTime, spent)
		}
	}
	s.servers(r.addrs)
	s.add("pipeline", processes, countProcesses(r.o.pipeline))
	s.add("pipeline", itemsDone, float64(r.done))
	s.add("pipeline", workersKilled, float64(r.killed))
	r.rows.Flush()
	return r.rows.Error()
}

// readEvents reads the events since the last call.
func (r *recorder) readEvents() error {
	for {
		line, err := r.lines.ReadString('\n')
		r.partial += line
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		var e event
		if err := json.Unmarshal([]byte(r.partial), &e); err != nil {
			return fmt.Errorf("%s: %q: %w", r.events.Name(), r.partial, err)
		}
		r.partial = ""
		r.applyEvent(e)
	}
}

func (r *recorder) applyEvent(e event) {
	switch e.Kind {
	case "stats":
		if e.Process == r.parent {
			e.Worker = "pipeline"
		}
		r.alive[e.Worker] = e
	case "worked":
		r.done++
	case "killed":
		r.killed++
		delete(r.alive, e.Worker)
	case "ended":
		delete(r.alive, e.Worker)
	}
}

// sample is one moment.
type sample struct {
	r  *recorder
	at time.Duration
}

func (s sample) add(subject, measure string, value float64) {
	s.r.series.add(subject, measure, point{s.at, value})
	_ = s.r.rows.Write([]string{ // the writer keeps its error for the end of the sample
		strconv.FormatFloat(s.at.Seconds(), 'f', 1, 64), subject, measure, strconv.FormatFloat(value, 'f', -1, 64),
	})
}

// process adds the measures of a process that the kernel reports. A worker may have been killed
// meanwhile: then it adds nothing.
func (s sample) process(subject string, pid int) {
	rss, anon, err := memory(pid)
	if err != nil || rss == 0 {
		return
	}
	s.add(subject, residentMemory, rss)
	s.add(subject, anonymousMemory, anon)
	if n, err := descriptors(pid); err == nil {
		s.add(subject, openDescriptors, n)
	}
}

// servers adds the servers' counters. If a server does not answer, or has no leader at the moment,
// this sample leaves all of them out. The summary fails if most samples do.
func (s sample) servers(addrs []string) {
	total := map[string]float64{}
	reports := make([]map[string]float64, len(addrs))
	for i, addr := range addrs {
		report, err := ensemble.FourLetter(addr, "mntr")
		if err != nil {
			return
		}
		reports[i] = numbers(report)
		if _, serves := reports[i][serverCounters[0].name]; !serves {
			return
		}
		for name, n := range reports[i] {
			total[name] += n
		}
	}
	for _, c := range serverCounters {
		if c.added {
			s.add("servers", c.measure, total[c.name])
			continue
		}
		for i, report := range reports {
			s.add(serverSubject(i), c.measure, report[c.name])
		}
	}
}

// serverSubject returns the name of the server with this index in the series.
func serverSubject(i int) string { return fmt.Sprintf("server-%d", i+1) }

// numbers returns the numbers in a server's report, by name. It leaves out other values.
func numbers(report string) map[string]float64 {
	values := map[string]float64{}
	for line := range strings.Lines(report) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if n, err := strconv.ParseFloat(value, 64); err == nil {
			values[name] = n
		}
	}
	return values
}
