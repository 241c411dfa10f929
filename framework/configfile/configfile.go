// Package configfile reads the configuration of a client, and the settings of a monitor, from a
// YAML or JSON file. Environment variables win over the file. The package is one of its own so that
// only programs with such a file link a YAML library.
//
//	client:
//	  servers: [zk1:2181, zk2:2181, zk3:2181]
//	  root: /shop
//	  sessionTimeout: 20s
//	  auth:
//	    - scheme: digest
//	      file: /run/secrets/zookeeper   # user:password; or env: NAME of a variable
//	  tls: {ca: ca.pem, cert: client.pem, key: client.key}
//	monitor:
//	  interval: 1m
//	  waiters: 20
//
// The keys are the fields of Client and Monitor. Durations are texts such as 20s. Secrets are not
// written in the file: it names the files or variables that have them. Relative names of files are
// relative to the directory of the configuration file.
package configfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/lockstep-go/lockstep/framework"
)

// File is what a file and the environment configure.
type File struct {
	// Client is for framework.New or framework.Connect.
	Client framework.Config
	// Monitor is for monitor.WithSettings(monitor.Settings(file.Monitor)).
	Monitor Monitor
}

// Monitor has the fields of monitor.Settings, and can be converted to it. It is declared here so
// that a program without a monitor does not link that package.
type Monitor struct {
	Interval     *time.Duration `yaml:"interval"`
	BeginAfter   *int           `yaml:"beginAfter"`
	EndAfter     *int           `yaml:"endAfter"`
	Waiters      *int           `yaml:"waiters"`
	LongHold     *time.Duration `yaml:"longHold"`
	SilentHolder *time.Duration `yaml:"silentHolder"`
	JobFailures  *int           `yaml:"jobFailures"`
	OldItem      *time.Duration `yaml:"oldItem"`
	FailingItem  *int           `yaml:"failingItem"`
	HeldItem     *time.Duration `yaml:"heldItem"`
	DeadLetters  *int           `yaml:"deadLetters"`
	FailedRuns   *int           `yaml:"failedRuns"`
	UntakenRun   *time.Duration `yaml:"untakenRun"`
	SessionBytes *int           `yaml:"sessionBytes"`
	GrowthScans  *int           `yaml:"growthScans"`
	GrowthItems  *int           `yaml:"growthItems"`
	Without      []string       `yaml:"without"`
}

// Client are the keys of a client, each as the field of framework.Config.
type Client struct {
	Servers           []string      `yaml:"servers"`
	Root              string        `yaml:"root"`
	Identity          string        `yaml:"identity"`
	SessionTimeout    time.Duration `yaml:"sessionTimeout"`
	DialTimeout       time.Duration `yaml:"dialTimeout"`
	RetryBase         time.Duration `yaml:"retryBase"`
	RetryMax          time.Duration `yaml:"retryMax"`
	FollowSpread      time.Duration `yaml:"followSpread"`
	CleanupTimeout    time.Duration `yaml:"cleanupTimeout"`
	MaxEphemeralBytes int           `yaml:"maxEphemeralBytes"`
	ObserverMasters   bool          `yaml:"observerMasters"`
	AlwaysAwake       bool          `yaml:"alwaysAwake"`
	Auth              []Credential  `yaml:"auth"`
	TLS               *TLS          `yaml:"tls"`
}

// Credential names the file, or the environment variable, of a secret.
type Credential struct {
	Scheme string `yaml:"scheme"` // default digest
	File   string `yaml:"file"`
	Env    string `yaml:"env"`
}

// TLS names PEM files: of the certificates to trust, and of the client's certificate and key.
type TLS struct {
	CA   string `yaml:"ca"`
	Cert string `yaml:"cert"`
	Key  string `yaml:"key"`
}

// Load reads a file. Each LOCKSTEP_ variable that is set (framework.Config.WithEnv) replaces what
// the file has. The error wraps framework.ErrInvalid, and names the file and, of an unknown
// key, a key that is there twice and a value of another type, the line. It shows no secret.
func Load(name string) (File, error) {
	content, err := os.ReadFile(name)
	if err != nil {
		return File{}, fmt.Errorf("%w: %w", framework.ErrInvalid, err)
	}
	file, err := parse(content, filepath.Dir(name))
	if err == nil {
		file.Client, err = file.Client.WithEnv()
	}
	if err == nil {
		err = file.Client.Validate()
	}
	if err != nil {
		if errors.Is(err, framework.ErrInvalid) {
			return File{}, fmt.Errorf("%s: %w", name, err)
		}
		return File{}, fmt.Errorf("%w: %s: %w", framework.ErrInvalid, name, err)
	}
	return file, nil
}

// document are the keys of a file.
type document struct {
	Client  Client  `yaml:"client"`
	Monitor Monitor `yaml:"monitor"`
}

// jsonOnlyEscape matches each escape of JSON: those of a slash and of surrogates are unknown to the
// YAML library.
var jsonOnlyEscape = regexp.MustCompile(`\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]..|.)`)

// decodeEscape decodes an escape that the YAML library does not know.
func decodeEscape(escape []byte) []byte {
	if string(escape) != `\/` && len(escape) <= len(`\u`) {
		return escape
	}
	var text string
	if json.Unmarshal(slices.Concat([]byte(`"`), escape, []byte(`"`)), &text) != nil {
		return escape
	}
	return []byte(text)
}

// parse reads the content of a file in a directory.
func parse(content []byte, dir string) (File, error) {
	if json.Valid(content) { // JSON is YAML, except for these
		content = jsonOnlyEscape.ReplaceAllFunc(content, decodeEscape)
	}
	var keys document
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	decoder.KnownFields(true)
	err := decoder.Decode(&keys)
	if err == nil && !errors.Is(decoder.Decode(new(yaml.Node)), io.EOF) {
		err = errors.New("want one document")
	}
	if err != nil && !errors.Is(err, io.EOF) { // an empty file has no keys
		return File{}, plainError(err)
	}
	c := keys.Client
	file := File{Monitor: keys.Monitor, Client: framework.Config{
		Servers: c.Servers, Root: c.Root, Identity: c.Identity, SessionTimeout: c.SessionTimeout,
		DialTimeout: c.DialTimeout, RetryBase: c.RetryBase, RetryMax: c.RetryMax, FollowSpread: c.FollowSpread,
		CleanupTimeout: c.CleanupTimeout, MaxEphemeralBytes: c.MaxEphemeralBytes,
		ObserverMasters: c.ObserverMasters, AlwaysAwake: c.AlwaysAwake,
	}}
	within := func(name string) string {
		if name == "" || filepath.IsAbs(name) {
			return name
		}
		return filepath.Join(dir, name)
	}
	for i, given := range c.Auth {
		credential, err := given.read(within)
		if err != nil {
			return File{}, fmt.Errorf("client.auth[%d]: %w", i, err)
		}
		file.Client.Auth = append(file.Client.Auth, credential)
	}
	if c.TLS != nil {
		files := *c.TLS
		file.Client.TLS, err = framework.TLSFromFiles(within(files.CA), within(files.Cert), within(files.Key))
		if err != nil {
			return File{}, fmt.Errorf("client.tls: %w", err)
		}
	}
	return file, nil
}

// read returns the credential that c names.
func (c Credential) read(within func(file string) string) (framework.Credential, error) {
	if c.Scheme == "" {
		c.Scheme = "digest"
	}
	switch {
	case (c.File == "") == (c.Env == ""):
		return framework.Credential{}, errors.New("give file or env, where the secret is")
	case c.File != "":
		return framework.CredentialFromFile(c.Scheme, within(c.File))
	}
	secret := os.Getenv(c.Env)
	if secret == "" || c.Scheme == "digest" && !strings.Contains(secret, ":") {
		return framework.Credential{}, fmt.Errorf("environment variable %s: want user:password", c.Env)
	}
	return framework.Credential{Scheme: c.Scheme, Auth: []byte(secret)}, nil
}

var (
	unknownKey = regexp.MustCompile(`field (\S+) not found in type \S+`)
	wrongType  = regexp.MustCompile("(?s)cannot unmarshal !!(\\w+)( `.*`)? into (\\S+)$")
	library    = regexp.MustCompile(`^yaml: `)
)

// plainError returns an error of the YAML library without Go's types. A value in the place of a
// credential is not shown: it may be a secret.
func plainError(err error) error {
	var several *yaml.TypeError
	if !errors.As(err, &several) {
		return errors.New(library.ReplaceAllString(err.Error(), ""))
	}
	var lines []string
	for _, line := range several.Errors {
		line = unknownKey.ReplaceAllString(line, `unknown key "$1"`)
		if found := wrongType.FindStringSubmatch(line); found != nil {
			value, want := found[2], strings.TrimLeft(found[3], "*")
			switch {
			case strings.HasSuffix(want, "configfile.Credential"):
				value, want = "", "a list of credentials, each with scheme, and file or env"
			case strings.HasPrefix(want, "configfile.") || strings.HasPrefix(want, "struct"):
				want = "keys with values"
			case want == "time.Duration":
				want = "a duration such as 20s"
			case want == "[]string":
				want = "a list of texts"
			}
			line = strings.TrimSuffix(line, found[0]) + fmt.Sprintf("got a %s%s, want %s", found[1], value, want)
		}
		lines = append(lines, line)
	}
	return errors.New(strings.Join(lines, "; "))
}
