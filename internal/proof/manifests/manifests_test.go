// Package manifests checks the manifests of docs/operate/kubernetes and the units of
// docs/operate/systemd.md.
package manifests

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/lockstep-go/lockstep"
	"github.com/lockstep-go/lockstep/election"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/zktest"
)

const directory = "../../../docs/operate/kubernetes"

// object is what these manifests use of Kubernetes's types. A field that is not listed is an error.
type object struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string
	Metadata   metadata
	Spec       yaml.Node
}

type metadata struct {
	Name   string
	Labels map[string]string
}

type selector struct {
	MatchLabels map[string]string `yaml:"matchLabels"`
}

type deployment struct {
	Replicas int
	Selector selector
	Strategy struct {
		RollingUpdate struct {
			MaxUnavailable int `yaml:"maxUnavailable"`
			MaxSurge       int `yaml:"maxSurge"`
		} `yaml:"rollingUpdate"`
	}
	Template struct {
		Metadata metadata
		Spec     struct {
			TerminationGracePeriodSeconds int `yaml:"terminationGracePeriodSeconds"`
			TopologySpreadConstraints     []struct {
				MaxSkew           int      `yaml:"maxSkew"`
				TopologyKey       string   `yaml:"topologyKey"`
				WhenUnsatisfiable string   `yaml:"whenUnsatisfiable"`
				LabelSelector     selector `yaml:"labelSelector"`
			} `yaml:"topologySpreadConstraints"`
			SecurityContext securityContext `yaml:"securityContext"`
			Containers      []container
			Volumes         []struct {
				Name   string
				Secret struct {
					SecretName  string `yaml:"secretName"`
					DefaultMode int    `yaml:"defaultMode"`
				}
			}
		}
	}
}

type container struct {
	Name, Image string
	Args        []string
	Ports       []struct {
		Name          string
		ContainerPort int `yaml:"containerPort"`
	}
	Env []struct {
		Name, Value string
		ValueFrom   struct {
			FieldRef struct {
				FieldPath string `yaml:"fieldPath"`
			} `yaml:"fieldRef"`
		} `yaml:"valueFrom"`
	}
	LivenessProbe  probe `yaml:"livenessProbe"`
	ReadinessProbe probe `yaml:"readinessProbe"`
	Lifecycle      struct {
		PreStop struct {
			Sleep struct{ Seconds int }
		} `yaml:"preStop"`
	}
	Resources       struct{ Requests, Limits map[string]string }
	SecurityContext securityContext `yaml:"securityContext"`
	VolumeMounts    []struct {
		Name      string
		MountPath string `yaml:"mountPath"`
		ReadOnly  bool   `yaml:"readOnly"`
	} `yaml:"volumeMounts"`
}

type probe struct {
	HTTPGet          struct{ Path, Port string } `yaml:"httpGet"`
	PeriodSeconds    int                         `yaml:"periodSeconds"`
	FailureThreshold int                         `yaml:"failureThreshold"`
}

type securityContext struct {
	RunAsNonRoot             bool `yaml:"runAsNonRoot"`
	RunAsUser                int  `yaml:"runAsUser"`
	FSGroup                  int  `yaml:"fsGroup"`
	AllowPrivilegeEscalation bool `yaml:"allowPrivilegeEscalation"`
	ReadOnlyRootFilesystem   bool `yaml:"readOnlyRootFilesystem"`
	Capabilities             struct{ Drop []string }
}

type disruptionBudget struct {
	MaxUnavailable int `yaml:"maxUnavailable"`
	Selector       selector
}

type networkPolicy struct {
	PodSelector selector `yaml:"podSelector"`
	PolicyTypes []string `yaml:"policyTypes"`
	Ingress     []struct {
		From []struct {
			PodSelector selector `yaml:"podSelector"`
		}
		Ports []struct {
			Protocol string
			Port     int
		}
	}
}

// TestManifests reads each manifest, and compares what it says with Lockstep's defaults and with
// the other manifests.
func TestManifests(t *testing.T) {
	var deployments []deployment
	var policy networkPolicy
	labels := map[string]map[string]string{} // of each deployment's pods
	budgets := map[string]disruptionBudget{}
	for _, o := range objects(t) {
		switch o.APIVersion + " " + o.Kind {
		case "apps/v1 Deployment":
			d := decode[deployment](t, o)
			deployments = append(deployments, d)
			labels[o.Metadata.Name] = d.Template.Metadata.Labels
			require.Subset(t, d.Template.Metadata.Labels, d.Selector.MatchLabels, o.Metadata.Name)
		case "policy/v1 PodDisruptionBudget":
			budgets[o.Metadata.Name] = decode[disruptionBudget](t, o)
		case "networking.k8s.io/v1 NetworkPolicy":
			policy = decode[networkPolicy](t, o)
		default:
			t.Fatalf("%s %s is not known here", o.APIVersion, o.Kind)
		}
	}
	require.Len(t, deployments, 2)
	for name, budget := range budgets {
		require.Subset(t, labels[name], budget.Selector.MatchLabels, name)
	}
	for _, d := range deployments {
		require.GreaterOrEqual(t, d.Replicas, 2, "one holds or leads, another stands by")
		require.Subset(t, d.Template.Metadata.Labels, policy.Ingress[0].From[0].PodSelector.MatchLabels)
		requireConfigured(t, d)
	}
	require.Equal(t, 2181, policy.Ingress[0].Ports[0].Port)
}

// requireConfigured checks a deployment's environment, probes and times.
func requireConfigured(t *testing.T, d deployment) {
	t.Helper()
	c := d.Template.Spec.Containers[0]
	for _, e := range c.Env {
		if e.Name != framework.EnvAuthFile { // the file is not here
			value := e.Value
			if value == "" {
				value = "billing-0"
			}
			t.Setenv(e.Name, value)
		}
	}
	config, err := framework.ConfigFromEnv()
	require.NoError(t, err)
	require.NoError(t, config.Validate())
	require.Len(t, config.Servers, 3)
	require.Equal(t, "billing-0", config.Identity)
	require.NotContains(t, c.Resources.Limits, "cpu", "a process that is throttled loses its holds")
	stop := time.Duration(d.Template.Spec.TerminationGracePeriodSeconds) * time.Second
	const grace = 30 * time.Second // of lockstep.Run
	if c.LivenessProbe.HTTPGet.Path == "" {
		return
	}
	require.Greater(t, stop, grace+time.Duration(c.Lifecycle.PreStop.Sleep.Seconds)*time.Second)
	require.Equal(t, "/livez", c.LivenessProbe.HTTPGet.Path)
	require.Equal(t, "/readyz", c.ReadinessProbe.HTTPGet.Path)
	require.Equal(t, c.Ports[0].Name, c.LivenessProbe.HTTPGet.Port)
}

// kubectlValidate has the schemas of Kubernetes, and needs no cluster (ADR 151).
const kubectlValidate = "sigs.k8s.io/kubectl-validate@v0.0.4"

// TestManifestsFitTheSchemas of Kubernetes, and a field with a mistake in its name does not.
func TestManifestsFitTheSchemas(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles Kubernetes's libraries, which takes minutes of a processor: run make test")
	}
	validate := func(dir string) (string, error) {
		out, err := exec.CommandContext(t.Context(), "nice", "go", "run", kubectlValidate, "--version", "1.30",
			dir).CombinedOutput()
		return string(out), err
	}
	out, err := validate(directory)
	require.NoError(t, err, out)
	files, err := filepath.Glob(directory + "/*.yaml")
	require.NoError(t, err)
	require.Equal(t, len(files), strings.Count(out, "OK"), out)
	policy, err := os.ReadFile(directory + "/network.yaml")
	require.NoError(t, err)
	wrong := t.TempDir()
	require.NoError(t, os.WriteFile(wrong+"/network.yaml", bytes.Replace(policy, []byte("policyTypes"),
		[]byte("policyType"), 1), 0o600))
	out, err = validate(wrong)
	require.Error(t, err)
	require.Contains(t, out, "spec.policyType: Invalid value: value provided for unknown field")
}

// pod is a replica of a service, run as its manifest says.
type pod struct {
	health  lockstep.Health
	sigterm context.CancelFunc
	leads   chan struct{} // closed when it does
	ended   chan error    // what lockstep.Run returns
}

// startPod starts a pod that takes some time to end its work as leader.
func startPod(t *testing.T, zk *zktest.Server, name string, endsWork time.Duration) *pod {
	m := zk.Member(t, name, framework.Config{SessionTimeout: 20 * time.Second})
	ctx, cancel := context.WithCancel(t.Context())
	p := &pod{sigterm: cancel, leads: make(chan struct{}), ended: make(chan error, 1)}
	work := func(ctx context.Context, _ *election.Term) error {
		select {
		case <-p.leads:
		default:
			close(p.leads)
		}
		<-ctx.Done()
		time.Sleep(endsWork)
		return nil
	}
	go func() {
		p.ended <- lockstep.Run(ctx, m.Client, []lockstep.Part{lockstep.Lead(election.New(m.Client, "/billing"), work)},
			lockstep.WithSignals(), lockstep.WithHealthState(&p.health))
	}()
	return p
}

// passes reports whether a probe succeeds now.
func (p *pod) passes(one probe) bool {
	answer := httptest.NewRecorder()
	p.health.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, one.HTTPGet.Path, nil))
	return answer.Code == http.StatusOK
}

// trips probes for a time, and reports whether the kubelet would have acted on the failures.
func (p *pod) trips(one probe, during time.Duration) bool {
	failures := 0
	for end := time.Now().Add(during); time.Now().Before(end); {
		if failures++; p.passes(one) {
			failures = 0
		}
		if failures == one.FailureThreshold {
			return true
		}
		time.Sleep(min(time.Duration(one.PeriodSeconds)*time.Second, time.Until(end)))
	}
	return false
}

// TestPodsEndAsTheManifestSays does what a kubelet does, in virtual time. A pod that is deleted is
// ready until preStop is over, and not after that. It lives until its work has ended, and ends
// before the kubelet kills it, also when its work does not end. Then the other pod leads at once.
func TestPodsEndAsTheManifestSays(t *testing.T) {
	d := deploymentOf(t, "billing")
	c := d.Template.Spec.Containers[0]
	for name, endsWork := range map[string]time.Duration{"in time": 25 * time.Second, "never": time.Hour} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				zk := zktest.Start(t)
				p := startPod(t, zk, "billing-0", endsWork)
				<-p.leads
				synctest.Wait()
				require.True(t, p.passes(c.ReadinessProbe))
				standby := startPod(t, zk, "billing-1", 0)

				killed := time.NewTimer(time.Duration(d.Template.Spec.TerminationGracePeriodSeconds) * time.Second)
				preStop := time.Duration(c.Lifecycle.PreStop.Sleep.Seconds) * time.Second
				require.False(t, p.trips(c.ReadinessProbe, preStop), "it serves until nobody calls it any more")
				p.sigterm()
				synctest.Wait()
				require.False(t, p.passes(c.ReadinessProbe))
				var err error
				for ended := false; !ended; time.Sleep(time.Second) {
					synctest.Wait()
					select {
					case err = <-p.ended:
						ended = true
					case <-killed.C:
						require.Fail(t, "the kubelet kills it")
					default:
						require.True(t, p.passes(c.LivenessProbe), "it still works")
					}
				}
				require.Equal(t, endsWork == time.Hour, errors.Is(err, framework.ErrUnfinished), "%v", err)
				require.Equal(t, endsWork == time.Hour, !p.passes(c.LivenessProbe))
				select {
				case <-standby.leads:
				default:
					require.Fail(t, "a second after the session was closed, nobody leads")
				}
				standby.sigterm()
				require.NoError(t, <-standby.ended)
				time.Sleep(endsWork) // so that no goroutine is left
			})
		})
	}
}

// TestTheAbsenceOfTheServersRestartsNoPod: it lives, and is not ready once its session may be over.
func TestTheAbsenceOfTheServersRestartsNoPod(t *testing.T) {
	c := deploymentOf(t, "billing").Template.Spec.Containers[0]
	synctest.Test(t, func(t *testing.T) {
		zk := zktest.Start(t)
		p := startPod(t, zk, "billing-0", 0)
		<-p.leads
		zk.Freeze()
		require.False(t, p.trips(c.ReadinessProbe, 10*time.Second), "the session may come back")
		require.False(t, p.trips(c.LivenessProbe, 10*time.Minute))
		require.False(t, p.passes(c.ReadinessProbe))
		zk.Thaw()
		require.Eventually(t, func() bool { return p.passes(c.ReadinessProbe) }, time.Minute, time.Second)
		p.sigterm()
		require.NoError(t, <-p.ended)
	})
}

// TestUnits has systemd verify the units of the page.
func TestUnits(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not installed")
	}
	page, err := os.ReadFile("../../../docs/operate/systemd.md")
	require.NoError(t, err)
	var units []string
	for block := range strings.SplitSeq(string(page), "\n\n") {
		switch {
		case strings.HasPrefix(block, "    [Unit]") || strings.HasPrefix(block, "    [Service]\n    Type="):
			units = append(units, block)
		case strings.HasPrefix(block, "    ["):
			units[len(units)-1] += "\n\n" + block
		}
	}
	require.Len(t, units, 2)
	for _, unit := range units {
		file := filepath.Join(t.TempDir(), "billing.service")
		text := regexp.MustCompile(`(?m)^    `).ReplaceAllString(unit, "")
		text = regexp.MustCompile(`(?m)^ExecStart=\S+`).ReplaceAllString(text, "ExecStart=/bin/true")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		out, err := exec.CommandContext(t.Context(), analyze, "verify", "--man=no", file).CombinedOutput()
		require.NoError(t, err, string(out))
		require.NotContains(t, string(out), "billing.service", "a warning")
	}
}

// deploymentOf returns the Deployment with this name.
func deploymentOf(t *testing.T, name string) (d deployment) {
	t.Helper()
	for _, o := range objects(t) {
		if o.Kind == "Deployment" && o.Metadata.Name == name {
			return decode[deployment](t, o)
		}
	}
	require.Fail(t, "no Deployment "+name)
	return d
}

// objects returns the objects of all manifests.
func objects(t *testing.T) (all []object) {
	t.Helper()
	files, err := filepath.Glob(directory + "/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		documents := yaml.NewDecoder(bytes.NewReader(text))
		documents.KnownFields(true)
		for {
			var o object
			err := documents.Decode(&o)
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err, file)
			all = append(all, o)
		}
	}
	return all
}

// decode returns an object's spec. It fails if T lacks one of its fields.
func decode[T any](t *testing.T, o object) (spec T) {
	t.Helper()
	text, err := yaml.Marshal(&o.Spec)
	require.NoError(t, err)
	strict := yaml.NewDecoder(bytes.NewReader(text))
	strict.KnownFields(true)
	require.NoError(t, strict.Decode(&spec), o.Metadata.Name)
	return spec
}
