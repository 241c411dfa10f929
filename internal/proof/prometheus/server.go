// Package prometheus runs a real Prometheus for tests.
package prometheus

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"
)

// TB is the part of testing.TB that this package needs.
type TB interface {
	Helper()
	Cleanup(func())
	Context() context.Context
	TempDir() string
	Fatalf(format string, args ...any)
	Skipf(format string, args ...any)
}

// Tool returns the path of a program of Prometheus: from PATH, or from the directory bin of the
// module, where scripts/install-test-tools puts it. If the program is missing, the test is skipped,
// or fails if CI=true.
func Tool(tb TB, name string) string {
	tb.Helper()
	if found, err := exec.LookPath(name); err == nil {
		return found
	}
	for dir, err := os.Getwd(); err == nil && dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if found, err := exec.LookPath(filepath.Join(dir, "bin", name)); err == nil {
			return found
		}
	}
	const missing = "%s is missing: install Debian's package prometheus, or run scripts/install-test-tools, which " +
		"starts no service"
	if os.Getenv("CI") == "true" {
		tb.Fatalf(missing, name)
	}
	tb.Skipf(missing, name)
	return ""
}

// Server is a running Prometheus.
type Server struct {
	tb  TB
	url string
	log *output
}

// output keeps the output of a process, and signals when it contains a text.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// Start runs Prometheus until the test ends. It reads the targets (host:port) every second and
// evaluates the rules of the file as often.
func Start(tb TB, rules string, targets ...string) *Server {
	tb.Helper()
	program := Tool(tb, "prometheus")
	dir := tb.TempDir()
	rules, err := filepath.Abs(rules)
	if err != nil {
		tb.Fatalf("%v", err)
	}
	quoted, err := json.Marshal(targets) // JSON is YAML
	if err != nil {
		tb.Fatalf("%v", err)
	}
	config := fmt.Sprintf("global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}\nrule_files: "+
		"[%q]\nscrape_configs: [{job_name: lockstep, static_configs: [{targets: %s}]}]\n", rules, quoted)
	file := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		tb.Fatalf("%v", err)
	}
	s := &Server{tb: tb, log: &output{}}
	command := exec.CommandContext(context.WithoutCancel(tb.Context()), program, "--config.file="+file,
		"--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address=127.0.0.1:0")
	command.Stdout, command.Stderr = s.log, s.log
	if err := command.Start(); err != nil {
		tb.Fatalf("%v", err)
	}
	tb.Cleanup(func() {
		_ = command.Process.Kill() // its data goes with the test's directory
		_ = command.Wait()
	})
	s.waitUntilReady()
	return s
}

var listening = regexp.MustCompile(`msg="Listening on" address=(\S+)`)

// waitUntilReady waits until the server answers queries. Before, it listens and refuses them.
func (s *Server) waitUntilReady() {
	for range 600 {
		if found := listening.FindStringSubmatch(s.log.String()); found != nil {
			s.url = "http://" + found[1]
			if answer, err := s.request(s.tb.Context(), "/-/ready"); err == nil {
				_ = answer.Body.Close()
				if answer.StatusCode == http.StatusOK {
					return
				}
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
	s.tb.Fatalf("Prometheus is not ready after a minute:\n%s", s.log)
}

// request sends one request over a new connection. The caller must close the answer's body.
func (s *Server) request(ctx context.Context, path string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+path, nil)
	if err != nil {
		return nil, err
	}
	request.Close = true
	return http.DefaultClient.Do(request)
}

// Sample is one series of an answer with its value, a number in decimal or NaN.
type Sample struct {
	Labels map[string]string
	Value  string
}

// Query evaluates an expression at the present time.
func (s *Server) Query(ctx context.Context, expr string) ([]Sample, error) {
	var answer struct {
		Result []struct {
			Metric map[string]string `json:"metric"`
			Value  [2]any            `json:"value"`
		} `json:"result"`
	}
	if err := s.get(ctx, "/api/v1/query?"+url.Values{"query": {expr}}.Encode(), &answer); err != nil {
		return nil, fmt.Errorf("%s: %w", expr, err)
	}
	samples := make([]Sample, len(answer.Result))
	for i, r := range answer.Result {
		samples[i] = Sample{r.Metric, fmt.Sprint(r.Value[1])}
	}
	return samples, nil
}

// Rule is an alert rule, with the result of its evaluation.
type Rule struct {
	Name   string `json:"name"`
	Query  string `json:"query"`
	Health string `json:"health"` // "ok" after an evaluation without an error, "unknown" before the first
	Error  string `json:"lastError"`
}

// Rules returns the alert rules.
func (s *Server) Rules(ctx context.Context) (rules []Rule, err error) {
	var answer struct {
		Groups []struct {
			Rules []Rule `json:"rules"`
		} `json:"groups"`
	}
	err = s.get(ctx, "/api/v1/rules", &answer)
	for _, g := range answer.Groups {
		rules = append(rules, g.Rules...)
	}
	return rules, err
}

// get reads the data of an answer of the API.
func (s *Server) get(ctx context.Context, path string, into any) error {
	answer, err := s.request(ctx, path)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	var envelope struct {
		Status string          `json:"status"`
		Error  string          `json:"error"`
		Data   json.RawMessage `json:"data"`
	}
	if err := json.NewDecoder(answer.Body).Decode(&envelope); err != nil {
		return err
	}
	if envelope.Status != "success" {
		return errors.New(strings.TrimSpace(envelope.Status + " " + envelope.Error))
	}
	return json.Unmarshal(envelope.Data, into)
}
